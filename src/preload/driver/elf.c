/*
 * Finds functions of libc in memory without dlsym, which the library replaces. It walks the loaded
 * objects (dl_iterate_phdr) and looks a name up in each GNU hash table, as the dynamic linker does.
 * It works with glibc (dlsym in libc or libdl) and musl.
 */
#include <elf.h>
#include <link.h>
#include <stdint.h>

#include "preload/driver/real.h"

void *(*td_libc_dlsym)(void *handle, const char *name);
void *(*td_libc_dlvsym)(void *handle, const char *name, const char *version);
void *(*td_libc_dlopen)(const char *name, int flags);

/*
 * Compares without strcmp: a sanitizer intercepts strcmp, and calls dlsym before its own is ready.
 */
bool td_is_same(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return *a == *b;
}

static bool begins_with(const char *text, const char *with)
{
	while (*with)
		if (*text++ != *with++)
			return false;
	return true;
}

static const char *base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

struct search {
	const char *name;
	void *found;
};

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *hash;
};

/*
 * Returns the address in a dynamic entry. glibc has relocated it; in musl and the vDSO it is
 * relative to the object.
 */
static const void *pointer(ElfW(Addr) base, ElfW(Addr) value)
{
	return (const void *)(value < base ? value + base : value);
}

static bool read_tables(ElfW(Addr) base, const ElfW(Dyn) * dynamic, struct tables *ret)
{
	*ret = (struct tables){NULL, NULL, NULL};
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == DT_SYMTAB)
			ret->symbols = pointer(base, dynamic->d_un.d_ptr);
		else if (dynamic->d_tag == DT_STRTAB)
			ret->strings = pointer(base, dynamic->d_un.d_ptr);
		else if (dynamic->d_tag == DT_GNU_HASH)
			ret->hash = pointer(base, dynamic->d_un.d_ptr);
	}
	return ret->symbols && ret->strings && ret->hash;
}

/* The hash function and table layout of DT_GNU_HASH. */
static void *look_up(ElfW(Addr) base, const struct tables *t, const char *name)
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
			td_is_same(t->strings + symbol->st_name, name))
			return (void *)(base + symbol->st_value);
		if (chain[i - first] & 1)
			break;
	}
	return NULL;
}

static bool search_in(
	struct search *search, const char *path, ElfW(Addr) base, const ElfW(Dyn) * dynamic)
{
	const char *name = base_name(path);
	struct tables tables;

	if (!begins_with(name, "libc.") && !begins_with(name, "libc-") &&
		!begins_with(name, "libdl") && !begins_with(name, "ld-musl"))
		return false;
	if (read_tables(base, dynamic, &tables))
		search->found = look_up(base, &tables, search->name);
	return search->found != NULL;
}

#ifdef TD_SANITIZED
/* dl_iterate_phdr is looked up too, because a sanitizer intercepts it. */
void *td_libc_symbol(const char *name)
{
	struct search search = {name, NULL};

	for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
		if (search_in(&search, map->l_name, map->l_addr, map->l_ld))
			break;
	return search.found;
}
#else
static int visit(struct dl_phdr_info *info, size_t size, void *search)
{
	const ElfW(Dyn) *dynamic = NULL;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return search_in(search, info->dlpi_name, info->dlpi_addr, dynamic);
}

void *td_libc_symbol(const char *name)
{
	struct search search = {name, NULL};

	dl_iterate_phdr(visit, &search);
	return search.found;
}
#endif

void td_libc_find(void)
{
	if (td_libc_dlsym)
		return;
	*(void **)&td_libc_dlvsym = td_libc_symbol("dlvsym");
	*(void **)&td_libc_dlopen = td_libc_symbol("dlopen");
	*(void **)&td_libc_dlsym = td_libc_symbol("dlsym");
}
