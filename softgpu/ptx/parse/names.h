/* Names in nested scopes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ptx/vm/vm.h"

enum symbol_kind {
	SYMBOL_REGISTER,       /* index: slot */
	SYMBOL_REGISTERS,      /* count of them from slot index: "%r" of .reg %r<9> */
	SYMBOL_VARIABLE,       /* index in the module */
	SYMBOL_SHARED,         /* index: offset in the block's shared memory */
	SYMBOL_SHARED_ENTRY,   /* the same, after the module's own */
	SYMBOL_SHARED_DYNAMIC, /* extern .shared */
	SYMBOL_LOCAL,          /* index: offset in the frame's local memory */
	SYMBOL_PARAM,          /* of an entry: index: offset in the parameter block */
	SYMBOL_FRAME_PARAM,    /* of a .func or of a call: offset in local memory */
	SYMBOL_FUNCTION,
	SYMBOL_LABEL, /* index of the instruction */
	SYMBOL_N
};

struct symbol {
	enum symbol_kind kind;
	enum ptx_type type;
	uint32_t index, count;
	uint32_t scope; /* the scope that it was added in */
	uint64_t size;  /* bytes of memory */
	struct function *function;
};

struct name {
	const char *at;
	uint32_t len, scope;
	uint32_t bucket, next; /* chain: index + 1 */
	struct symbol symbol;
};

struct names {
	struct name *names;
	uint32_t count, capacity;
	uint32_t *buckets; /* a bucket is the index + 1 of its newest name */
	uint32_t bucket_count;
	uint32_t scope;
};

void sg_ptx_names_deinit(struct names *n);

/*
 * Adds a name. Returns 0, -EEXIST if this scope has it already, or -ENOMEM. The text must outlive
 * the table.
 */
int sg_ptx_names_add(struct names *n, const char *at, uint32_t len, const struct symbol *symbol);
struct symbol *sg_ptx_names_find(const struct names *n, const char *at, uint32_t len);
void sg_ptx_names_open(struct names *n);
/* forgets all names that were added since the last open */
void sg_ptx_names_close(struct names *n);
