#!/bin/sh
# Builds kube-apiserver, kube-scheduler, kube-controller-manager, kubelet and kubectl from Debian's
# source package, and takes containerd, runc and etcd out of Debian's packages, without installing
# any of these. Needs golang-go. About ten minutes on two cores, once.
# usage: build.sh FOLDER
set -eu
top=$1
mkdir -p "$top/bin" "$top/debian" "$top/lists/partial"
cd "$top"

# The sources of Debian that apt has here, as sources of source packages.
apt_sources() {
	for file in /etc/apt/sources.list.d/*.sources; do
		if grep -q '^Signed-By:.*debian-archive-keyring' "$file"; then
			sed 's/^Types:.*/Types: deb-src/' "$file"
			echo
		fi
	done
	if [ -f /etc/apt/sources.list ]; then
		sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$top/src.list"
	fi
}

fetch() {
	ls -d kubernetes-*/cmd >/dev/null 2>&1 && return
	apt_sources >src.sources
	parts=$top/src.sources
	[ -s "$parts" ] || parts=$top/src.list
	set -- -o "Dir::Etc::sourcelist=$parts" -o Dir::Etc::sourceparts=- \
		-o "Dir::State::lists=$top/lists" -o APT::Sandbox::User=root
	apt-get "$@" update
	apt-get "$@" source kubernetes
}

# The package lacks one generated file; its Makefile makes it of all folders with this tag.
generate() {
	out=pkg/generated/openapi
	[ ! -s $out/zz_generated.openapi.go ] || return 0
	go install k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen
	tag='+k8s:openapi-gen='
	folders=$({
		grep -rl --include='*.go' -e "$tag" pkg cmd plugin test
		(cd staging/src && grep -rl --include='*.go' -e "$tag" k8s.io | sed 's,^,vendor/,')
	} | xargs -n1 dirname | sort -u |
		grep -v -e /code-generator/ -e /sample-apiserver/ -e kube-openapi |
		sed 's,^,k8s.io/kubernetes/,' | paste -sd,)
	GOROOT=$(go env GOROOT) "$GOPATH/bin/openapi-gen" --logtostderr -i "$folders" \
		-p k8s.io/kubernetes/$out -O zz_generated.openapi -r /dev/null \
		-h vendor/k8s.io/code-generator/hack/boilerplate.go.txt
}

# The reflect2 of these sources crashes where maps are written, when it is built with Go 1.18 or
# newer (it was made for older ones). Debian has a newer one.
renew_reflect2() {
	ours=vendor/github.com/modern-go/reflect2
	[ ! -f $ours/go_above_118.go ] || return 0
	(
		cd "$top/debian"
		apt-get download golang-github-modern-go-reflect2-dev
		dpkg-deb -x golang-github-modern-go-reflect2-dev*.deb .
		rm golang-github-modern-go-reflect2-dev*.deb
	)
	rm $ours/*.go $ours/*.s
	cp "$top/debian/usr/share/gocode/src/github.com/modern-go/reflect2"/*.go $ours/
	cp "$top/debian/usr/share/gocode/src/github.com/modern-go/reflect2"/*.s $ours/
}

fetch
source=$(echo "$top"/kubernetes-*/)
version=v$(basename "$source" | sed 's/.*really//; s/^kubernetes-//')
minor=${version#*.}
export GO111MODULE=off CGO_ENABLED=0 GOFLAGS="-trimpath -p=2"
export GOPATH="${source}.go" GOCACHE="$top/go"
mkdir -p "$GOPATH/src/k8s.io"
ln -sfn ../../.. "$GOPATH/src/k8s.io/kubernetes"
cd "$GOPATH/src/k8s.io/kubernetes"
renew_reflect2
generate
vendor=k8s.io/kubernetes/vendor/k8s.io
info=$vendor/component-base/version
flags="-s -w -X $info.gitVersion=$version -X $info.gitMajor=1 -X $info.gitMinor=${minor%%.*}"
flags="$flags -X $vendor/client-go/pkg/version.gitVersion=$version"
for name in kubelet kube-apiserver kube-controller-manager kube-scheduler kubectl; do
	[ ! -x "$top/bin/$name" ] || continue
	echo "building $name"
	nice -n 15 go build -o "$top/bin/$name.new" -ldflags "$flags" "k8s.io/kubernetes/cmd/$name"
	mv "$top/bin/$name.new" "$top/bin/$name"
done
cd "$top/debian"
if [ ! -x usr/bin/containerd ] || [ ! -x usr/sbin/runc ] || [ ! -x usr/bin/etcd ]; then
	apt-get download containerd runc etcd-server
	for package in *.deb; do
		dpkg-deb -x "$package" .
		rm "$package"
	done
fi
