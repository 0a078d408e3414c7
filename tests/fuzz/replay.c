/*
 * Runs a fuzzer's target once over every file of its corpus, so that past crashes stay fixed, also
 * without clang. TAP on stdout.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *dir, const char *name)
{
	char path[4096];
	uint8_t *data;
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	if (!f)
		return -1;
	fseek(f, 0, SEEK_END);
	size = (size_t)ftell(f);
	rewind(f);
	/* An exact allocation, so that a sanitizer sees the first byte read beyond the input. */
	data = malloc(size ? size : 1);
	if (!data || fread(data, 1, size, f) != size)
		exit(2);
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	int n = 0, failed = 0;
	DIR *dir;

	dir = argc == 2 ? opendir(argv[1]) : NULL;
	if (!dir) {
		fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		n++;
		if (replay(argv[1], entry->d_name)) {
			failed = 1;
			printf("not ok %d - %s\n", n, entry->d_name);
		} else {
			printf("ok %d - %s\n", n, entry->d_name);
		}
	}
	closedir(dir);
	printf("1..%d\n", n);
	return failed || n == 0;
}
