/*
 * Question 10, second half: which driver functions a program on the CUDA runtime looks up. Needs
 * nvcc.
 */
#include "probe.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char probe_name[] = "runtime";
const char probe_question[] = "Which driver functions does a program on the CUDA runtime look up "
			      "before and for a launch, an allocation and a free?";

/* Writes every name that is asked of cuGetProcAddress_v2 to standard error. */
static const char tracer[] =
	"#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n"
	"static int (*real)(const char *, void **, int, unsigned long long, int *);\n"
	"static int get(const char *n, void **p, int v, unsigned long long f, int *s)\n"
	"{ int r = real(n, p, v, f, s); fprintf(stderr, \"lookup %s %d %llu %d\\n\", n, v, f, r); "
	"return r; }\n"
	"void *dlsym(void *h, const char *n)\n{ static void *(*next)(void *, const char *);\n"
	"if (!next) next = dlvsym(RTLD_NEXT, \"dlsym\", \"GLIBC_2.2.5\");\n"
	"if (!next) next = dlvsym(RTLD_NEXT, \"dlsym\", \"GLIBC_2.34\");\n"
	"if (!strcmp(n, \"cuGetProcAddress_v2\")) { *(void **)&real = next(h, n); return real ? "
	"(void *)get : 0; }\n"
	"return next(h, n); }\n";
static const char source[] = "__global__ void k(int *p) { *p = 1; }\n#include <stdio.h>\nint "
			     "main() { int *p; int r = cudaMalloc(&p, 4);\n"
			     "fprintf(stderr, \"after cudaMalloc %d\\n\", r); k<<<1,1>>>(p); r = "
			     "cudaDeviceSynchronize();\n"
			     "fprintf(stderr, \"after the launch %d\\n\", r); r = cudaFree(p); "
			     "fprintf(stderr, \"after cudaFree %d\\n\", r); return 0; }\n";

static int save(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	if (!f)
		return -1;
	fputs(text, f);
	return fclose(f);
}

void probe_run(void)
{
	char folder[] = "/tmp/probe-runtime-XXXXXX", command[1024], line[256], text[2000] = "";
	unsigned lookups = 0;
	FILE *f;

	if (system("command -v nvcc >/dev/null 2>&1"))
		probe_answer("not asked: no nvcc here");
	probe_begin();
	if (probe_is_software())
		probe_answer("not asked: NVIDIA's runtime does not run on a software driver, and "
			     "is not meant to");
	if (!mkdtemp(folder) || save(folder, "t.c", tracer) || save(folder, "p.cu", source))
		probe_answer("no folder to build in");
	snprintf(command, sizeof(command),
		"cd %s && cc -shared -fPIC -w -o t.so t.c -ldl 2>&1 && nvcc -cudart shared -o p "
		"p.cu 2>&1 && LD_PRELOAD=./t.so ./p 2>&1; rm -rf %s",
		folder, folder);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "lookup ", 7))
			lookups++;
		else if (strlen(text) + strlen(line) + 64 < sizeof(text))
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				" [%u look-ups] %s;", lookups, line);
	}
	if (f)
		pclose(f);
	probe_value(lookups, "look-ups", "by cuGetProcAddress in all");
	probe_answer("%s", *text ? text : "the program said nothing");
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
