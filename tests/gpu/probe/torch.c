/* Question 34: what a PyTorch process has loaded and open that may register memory. */
#include "probe.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

const char probe_name[] = "torch";
const char probe_question[] = "Which libraries that can register memory with other hardware does "
			      "import torch load, and which devices does it open?";

static const char command[] =
	"python3 -c '\n"
	"import importlib.util, os, re, sys\n"
	"if not importlib.util.find_spec(\"torch\"): sys.exit(3)\n"
	"import torch\n"
	"if torch.cuda.is_available(): torch.zeros(1, device=\"cuda\")\n"
	"maps = open(\"/proc/self/maps\").read()\n"
	"libs = "
	"sorted(set(re.findall(r\"/(lib(?:cufile|ibverbs|mlx|rdma|gdr|uc[pst]|fabric|psm2|nccl"
	"|nvshmem)[^/\\s]*)\", maps)))\n"
	"fds = set()\n"
	"for fd in os.listdir(\"/proc/self/fd\"):\n"
	"    try: fds.add(os.readlink(\"/proc/self/fd/\" + fd))\n"
	"    except OSError: pass\n"
	"print(\"torch\", torch.__version__, \"has loaded\", \" \".join(libs) or \"none\", "
	"\"and has open\", \" \".join(sorted(f for f in fds if f.startswith(\"/dev/\") and f != "
	"\"/dev/null\")) or \"none\")\n"
	"' 2>/dev/null";

void probe_run(void)
{
	char line[1024] = "";
	FILE *python;
	int status;

	if (probe_begin_quietly())
		probe_answer("no GPU: import torch was not tried");
	python = popen(command, "r");
	if (python && fgets(line, sizeof(line), python))
		line[strcspn(line, "\n")] = '\0';
	status = python ? pclose(python) : -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
		probe_answer("skipped: python3 has no torch");
	if (status || !*line)
		probe_answer("skipped: python3 cannot import torch");
	probe_answer("%s", line);
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
