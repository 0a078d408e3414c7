/*
 * Finds out whether a program contains the CUDA runtime. nvcc links it statically unless told
 * otherwise (-cudart shared). Such a program has kernels in a section that the runtime registers,
 * and does not need libcudart.so. The file is not trusted: one whose parts do not fit does not
 * count.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define TABLE_MAX ((size_t)16 << 20)

/*
 * Reads a part of the file and adds a NUL. Returns memory to be freed, or NULL if the part is not
 * complete.
 */
static char *read_part(int fd, uint64_t offset, uint64_t size)
{
	char *part = size && size <= TABLE_MAX ? malloc(size + 1) : NULL;

	if (!part)
		return NULL;
	part[size] = 0;
	if (pread(fd, part, size, (off_t)offset) == (ssize_t)size)
		return part;
	free(part);
	return NULL;
}

static const Elf64_Shdr *find_section(const Elf64_Shdr *sections, unsigned count, const char *names,
	uint64_t names_size, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (sections[i].sh_name < names_size && !strcmp(names + sections[i].sh_name, name))
			return &sections[i];
	return NULL;
}

/* Returns whether there is a DT_NEEDED entry that begins with `library`. */
static bool needs(int fd, const Elf64_Shdr *dynamic, const Elf64_Shdr *strings, const char *library)
{
	size_t entry_count = dynamic->sh_size / sizeof(Elf64_Dyn);
	char *entries = read_part(fd, dynamic->sh_offset, entry_count * sizeof(Elf64_Dyn)),
	     *text = read_part(fd, strings->sh_offset, strings->sh_size);
	bool found = false;

	for (size_t i = 0; entries && text && i < entry_count; i++) {
		Elf64_Dyn entry;

		memcpy(&entry, entries + i * sizeof(entry), sizeof(entry));
		found |= entry.d_tag == DT_NEEDED && entry.d_un.d_val < strings->sh_size &&
			 !strncmp(text + entry.d_un.d_val, library, strlen(library));
	}
	free(entries);
	free(text);
	return found;
}

bool td_cli_has_static_cudart(int fd, const Elf64_Ehdr *header)
{
	unsigned count = header->e_shnum;
	char *table = header->e_shentsize == sizeof(Elf64_Shdr)
			      ? read_part(fd, header->e_shoff, count * sizeof(Elf64_Shdr))
			      : NULL;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(void *)table, *dynamic, *strings;
	char *names = table && header->e_shstrndx < count
			      ? read_part(fd, sections[header->e_shstrndx].sh_offset,
					sections[header->e_shstrndx].sh_size)
			      : NULL;
	bool found = false;

	if (names) {
		uint64_t size = sections[header->e_shstrndx].sh_size;

		dynamic = find_section(sections, count, names, size, ".dynamic");
		strings = find_section(sections, count, names, size, ".dynstr");
		found = find_section(sections, count, names, size, ".nvFatBinSegment") && dynamic &&
			strings && !needs(fd, dynamic, strings, "libcudart.so");
	}
	free(names);
	free(table);
	return found;
}
