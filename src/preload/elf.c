/*
 * Finds functions of libc in memory, without dlsym: we stand in for that one. Walks the loaded objects (dl_iterate_phdr) and looks a name
 * up in each one's GNU hash table, as the dynamic linker does. Works with glibc (dlsym in libc or libdl) and musl.
 */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "preload/real.h"

void *(*td_libc_dlsym)(void *handle, const char *name);
void *(*td_libc_dlvsym)(void *handle, const char *name, const char *version);
void *(*td_libc_dlopen)(const char *name, int flags);

struct search {
	const char *name;
	void *found;
};

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *hash;
};

/* Dynamic entries hold addresses: relocated by glibc, relative to the object in musl and the vDSO. */
static const void *pointer(const struct dl_phdr_info *info, ElfW(Addr) value)
{
	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

static bool read_tables(const struct dl_phdr_info *info, struct tables *ret)
{
	const ElfW(Dyn) *dynamic = NULL;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	memset(ret, 0, sizeof(*ret));
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == DT_SYMTAB)
			ret->symbols = pointer(info, dynamic->d_un.d_ptr);
		else if (dynamic->d_tag == DT_STRTAB)
			ret->strings = pointer(info, dynamic->d_un.d_ptr);
		else if (dynamic->d_tag == DT_GNU_HASH)
			ret->hash = pointer(info, dynamic->d_un.d_ptr);
	}
	return ret->symbols && ret->strings && ret->hash;
}

/* The hash function and table layout of DT_GNU_HASH. */
static void *look_up(const struct dl_phdr_info *info, const struct tables *t, const char *name)
{
	uint32_t bucket_count = t->hash[0], first = t->hash[1], bloom_words = t->hash[2], h = 5381;
	const uint32_t *buckets = t->hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4),
		       *chain = buckets + bucket_count;

	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		h = h * 33 + *p;
	if (!bucket_count)
		return NULL;
	for (uint32_t i = buckets[h % bucket_count]; i >= first; i++) {
		const ElfW(Sym) *symbol = &t->symbols[i];

		if ((chain[i - first] | 1) == (h | 1) && symbol->st_shndx &&
			!strcmp(t->strings + symbol->st_name, name))
			return (void *)(info->dlpi_addr + symbol->st_value);
		if (chain[i - first] & 1)
			break;
	}
	return NULL;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');
	struct search *search = arg;
	struct tables tables;

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, "libc.", 5) && strncmp(base, "libc-", 5) && strncmp(base, "libdl", 5) &&
		strncmp(base, "ld-musl", 7))
		return 0;
	if (read_tables(info, &tables))
		search->found = look_up(info, &tables, search->name);
	return search->found != NULL;
}

void *td_libc_symbol(const char *name)
{
	struct search search = {name, NULL};

	dl_iterate_phdr(visit, &search);
	return search.found;
}

void td_libc_find(void)
{
	if (td_libc_dlsym)
		return;
	*(void **)&td_libc_dlvsym = td_libc_symbol("dlvsym");
	*(void **)&td_libc_dlopen = td_libc_symbol("dlopen");
	*(void **)&td_libc_dlsym = td_libc_symbol("dlsym");
}
