/*
 * Predicts what the dynamic linker does with an ELF file. The linker warns about an LD_PRELOAD
 * entry that it cannot load, and runs the program without it. The file is not trusted: parts that
 * do not fit are ignored. See the System V ABI, "Object Files" and "Program Loading and Dynamic
 * Linking".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#if defined(__x86_64__)
#define MACHINE      EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE      EM_AARCH64
#define MACHINE_NAME "AArch64"
#endif

#define DYNAMIC_MAX 4096 /* the most entries that are read */
#define SONAME      "libtandem.so"

bool td_cli_read_elf(int fd, Elf64_Ehdr *ret)
{
	return pread(fd, ret, sizeof(*ret), 0) == sizeof(*ret) &&
	       !memcmp(ret->e_ident, ELFMAG, SELFMAG);
}

bool td_cli_is_for_this_machine(const Elf64_Ehdr *header)
{
	return header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       header->e_machine == MACHINE;
}

static bool read_segment(int fd, const Elf64_Ehdr *header, unsigned i, Elf64_Phdr *ret)
{
	return pread(fd, ret, sizeof(*ret), (off_t)(header->e_phoff + i * sizeof(*ret))) ==
	       sizeof(*ret);
}

/* Finds the first segment of that type. */
static bool find_segment(int fd, const Elf64_Ehdr *header, uint32_t type, Elf64_Phdr *ret)
{
	for (unsigned i = 0; i < header->e_phnum; i++)
		if (read_segment(fd, header, i, ret) && ret->p_type == type)
			return true;
	return false;
}

bool td_cli_has_interpreter(int fd, const Elf64_Ehdr *header)
{
	Elf64_Phdr segment;

	return find_segment(fd, header, PT_INTERP, &segment);
}

/* Finds the entry with that tag in the dynamic section. Returns false if there is none. */
static bool find_dynamic(int fd, const Elf64_Phdr *dynamic, int64_t tag, uint64_t *ret)
{
	Elf64_Dyn entry;

	for (unsigned i = 0; i < DYNAMIC_MAX && i < dynamic->p_filesz / sizeof(entry); i++) {
		if (pread(fd, &entry, sizeof(entry),
			    (off_t)(dynamic->p_offset + i * sizeof(entry))) != sizeof(entry) ||
			entry.d_tag == DT_NULL)
			return false;
		if (entry.d_tag == tag) {
			*ret = entry.d_un.d_val;
			return true;
		}
	}
	return false;
}

/* Returns the offset in the file of the byte that is loaded at that address; 0 if there is none. */
static uint64_t offset_of(int fd, const Elf64_Ehdr *header, uint64_t address)
{
	Elf64_Phdr s;

	for (unsigned i = 0; i < header->e_phnum; i++)
		if (read_segment(fd, header, i, &s) && s.p_type == PT_LOAD &&
			address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
			return s.p_offset + (address - s.p_vaddr);
	return 0;
}

static bool is_ours(int fd, const Elf64_Ehdr *header, const Elf64_Phdr *dynamic)
{
	uint64_t strings, name, at;
	char text[sizeof(SONAME)];

	if (!find_dynamic(fd, dynamic, DT_STRTAB, &strings) ||
		!find_dynamic(fd, dynamic, DT_SONAME, &name))
		return false;
	at = offset_of(fd, header, strings + name);
	return at && pread(fd, text, sizeof(text), (off_t)at) == sizeof(text) &&
	       !memcmp(text, SONAME, sizeof(text));
}

/*
 * Returns whether all segments lie within the file. A truncated library would crash the program
 * that loads it.
 */
static bool is_whole(int fd, const Elf64_Ehdr *header, uint64_t size)
{
	Elf64_Phdr s;

	for (unsigned i = 0; i < header->e_phnum; i++)
		if (!read_segment(fd, header, i, &s) || s.p_offset > size ||
			(s.p_type == PT_LOAD && s.p_filesz > size - s.p_offset))
			return false;
	return true;
}

static const char *what_else(int fd)
{
	Elf64_Ehdr header;
	Elf64_Phdr dynamic;
	uint64_t flags;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return strerror(errno);
	if (S_ISDIR(st.st_mode))
		return "is a directory";
	if (!S_ISREG(st.st_mode))
		return "is no regular file";
	if (!td_cli_read_elf(fd, &header))
		return "is no ELF file";
	if (!td_cli_is_for_this_machine(&header))
		return "is for another kind of processor";
	if (header.e_type != ET_DYN || td_cli_has_interpreter(fd, &header))
		return "is a program";
	if (header.e_phentsize != sizeof(Elf64_Phdr) ||
		!is_whole(fd, &header, (uint64_t)st.st_size) ||
		!find_segment(fd, &header, PT_DYNAMIC, &dynamic))
		return "is not all there";
	if (find_dynamic(fd, &dynamic, DT_FLAGS_1, &flags) && flags & DF_1_PIE)
		return "is a program";
	return is_ours(fd, &header, &dynamic) ? NULL : "is another library";
}

bool td_cli_is_library(const char *path, char *ret_why, size_t len)
{
	/* O_NONBLOCK: opening a pipe must not wait for a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const char *why = fd < 0 ? strerror(errno) : what_else(fd);

	if (why)
		snprintf(ret_why, len,
			"\"%s\" %s%s: expected tandem's " SONAME
			", a shared library for " MACHINE_NAME,
			path, fd < 0 ? "cannot be read: " : "", why);
	if (fd >= 0)
		close(fd);
	return !why;
}
