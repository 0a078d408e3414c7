/* The parser's shared state: module.c reads declarations, body.c function bodies, decode_*.c turns
 * statements into instructions with what build.c offers. */
#pragma once

#include "ptx/parse/lex.h"
#include "ptx/parse/names.h"
#include "ptx/vm/ops.h"

#define MAX_MODIFIERS    16u
#define MAX_OPERANDS     8u
#define MAX_FRAME_SLOTS  (1u << 16)
#define MAX_LOCAL        (512u << 10)
#define MAX_PARAM_BYTES  32764u
#define MAX_INSTRUCTIONS (1u << 22)

enum operand_kind {
	OPERAND_SLOT, /* a register or special register; is_negated: !%p */
	OPERAND_INT,
	OPERAND_FLOAT,
	OPERAND_SYMBOL,
	OPERAND_CLOCK, /* a special register that changes: control says which */
	OPERAND_VECTOR,
	OPERAND_ADDRESS, /* [base + offset] */
	OPERAND_NAME,    /* not known yet: a label */
	OPERAND_SINK,    /* _ */
	OPERAND_N
};

struct operand {
	enum operand_kind kind;
	enum operand_kind base; /* the base of an address: slot, symbol or int */
	enum ptx_type type;     /* the type of a register */
	enum control_op control;
	bool is_negated;
	bool is_single;        /* a float of 32 bits */
	uint32_t slot, second; /* second: q of p|q, or 0 */
	uint32_t slots[4], slot_count;
	uint64_t value; /* integer, float bits, or offset */
	struct symbol symbol;
	const char *at; /* the text, for messages */
	uint32_t len;
};

struct modifier {
	const char *at;
	uint32_t len;
	bool is_taken;
};

struct opcode;

struct statement {
	uint32_t line;
	const char *at;
	uint32_t len;
	struct modifier modifiers[MAX_MODIFIERS];
	uint32_t modifier_count;
	struct operand operands[MAX_OPERANDS];
	uint32_t operand_count;
	const struct opcode *opcode;
};

struct fixup {
	uint32_t insn, line;
	const char *at; /* label; NULL: target is an index */
	uint32_t len, target;
};

/* A table of .branchtargets: where its list of labels begins in the text. */
struct table {
	const char *at;
	uint32_t len;
	struct lexer list;
};

/* The first and the last use of a slot, for the estimate of registers. */
struct live {
	uint32_t first, last;
	uint8_t words; /* in 32-bit words; 0: never counted */
};

/* The growing arrays of the function that is being parsed. */
struct build {
	struct function *f;
	uint32_t insn_capacity, line_capacity, frame_capacity, special_capacity, reloc_capacity;
	uint32_t live_capacity, live_count;
	struct live *lives;
	struct fixup *fixups;
	uint32_t fixup_count, fixup_capacity;
	uint32_t *constants; /* slots that hold plain constants, newest last */
	uint32_t constant_count, constant_capacity;
	struct table *tables;
	uint32_t table_count, table_capacity;
	uint32_t plain_from; /* instructions from here on are plain arithmetic, decode_spin.c */
	uint32_t clock_end;  /* after the last read of a clock */
	struct names labels;
	uint32_t entry_shared_bytes;
	uint32_t special_slots[SPECIAL_N];
};

struct parser {
	struct lexer lex;
	struct td_err *err;
	int failed; /* the first failure; everything after it is skipped */
	struct sg_ptx_module *m;
	struct names names;  /* the names of the part that is being parsed */
	struct names linked; /* the names of all parts: .visible, .weak, .extern */
	struct build b;
	uint32_t function_capacity, variable_capacity;
	uint32_t line;         /* the line of the present statement */
	uint32_t refused_line; /* the line of the failure if it is a refusal; else 0 */
};

/* Reports an error, "line N: ...". Only the first one is kept. Returns p->failed. */
int sg_ptx_fail(struct parser *p, uint32_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Like sg_ptx_fail(), for PTX that is not supported. In a body only its function is refused. */
int sg_ptx_refuse(struct parser *p, uint32_t line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int sg_ptx_fail_memory(struct parser *p);
int sg_ptx_fail_token(struct parser *p, const char *expected);

/* Makes room for one more element; false after sg_ptx_fail_memory. */
bool sg_ptx_reserve(struct parser *p, void *array, uint32_t *capacity, uint32_t count, size_t size);

/* Tokens. */
bool sg_ptx_accept(struct parser *p, char c);
bool sg_ptx_accept_dot(struct parser *p, const char *name);
bool sg_ptx_expect(struct parser *p, char c);
bool sg_ptx_is_name(const struct parser *p);
uint64_t sg_ptx_parse_number(struct parser *p); /* unsigned */
bool sg_ptx_text_is(const char *at, uint32_t len, const char *name);
enum ptx_type sg_ptx_type_of(const char *at, uint32_t len); /* T_NONE: not a type */
uint32_t sg_ptx_type_bytes(enum ptx_type type);
char *sg_ptx_copy_name(struct parser *p, const char *at, uint32_t len);

/* The visibility of a name to other parts. */
enum linkage { LINKAGE_LOCAL, LINKAGE_VISIBLE, LINKAGE_WEAK, LINKAGE_EXTERN };

/* parse.c: a declaration "[.align n] .type name[dims]" after its space. */
struct declaration {
	const char *at;
	uint32_t len, line;
	enum ptx_type type;
	uint64_t align, bytes, elements;
	bool is_unsized; /* name[] */
};
bool sg_ptx_parse_declaration(struct parser *p, struct declaration *ret);
void sg_ptx_declare(struct parser *p, const struct declaration *d, const struct symbol *symbol);
void sg_ptx_declare_linked(struct parser *p, const struct declaration *d,
	const struct symbol *symbol, enum linkage linkage);
struct symbol *sg_ptx_find_name(const struct parser *p, const char *at, uint32_t len);

/* variable.c. */
void sg_ptx_parse_variable(struct parser *p, bool constant, enum linkage linkage);
void sg_ptx_parse_shared(struct parser *p, bool external);

/* link.c: links the whole module. */
void sg_ptx_link(struct parser *p);

/* body.c: parses a body from '{' to its '}'. */
void sg_ptx_parse_body(struct parser *p, struct function *f);
bool sg_ptx_parse_operand(struct parser *p, struct operand *ret);

/* build.c. */
void sg_ptx_build_begin(struct parser *p, struct function *f);
void sg_ptx_build_end(struct parser *p);
void sg_ptx_build_deinit(struct build *b);
uint32_t sg_ptx_new_slots(struct parser *p, uint32_t count, enum ptx_type type);
uint32_t sg_ptx_constant(struct parser *p, uint64_t value);
uint32_t sg_ptx_special(struct parser *p, enum special special);
uint32_t sg_ptx_new_local(struct parser *p, uint64_t bytes, uint64_t align);
struct insn *sg_ptx_emit(
	struct parser *p, op_fn fn, uint32_t d, uint32_t a, uint32_t b, uint32_t c);
void sg_ptx_fix(struct parser *p, uint32_t insn, const struct operand *label, uint32_t target);

/*
 * These return the slot of an operand; SLOT_ZERO after a failure. sg_ptx_source() also accepts a
 * constant or an address, of the given type.
 */
uint32_t sg_ptx_source(struct parser *p, const struct operand *o, enum ptx_type type);
uint32_t sg_ptx_target(struct parser *p, const struct operand *o, enum ptx_type type);
/*
 * Returns the base slot and the offset of [..] in *space, which becomes local for parameters of
 * functions.
 */
uint32_t sg_ptx_address(struct parser *p, const struct operand *o, enum ptx_space *space,
	uint32_t bytes, int32_t *ret_offset);

/* Modifiers. */
bool sg_ptx_take(struct statement *s, const char *name);
enum ptx_type sg_ptx_take_type(struct statement *s);
/* Reports an error that quotes the whole instruction. */
int sg_ptx_unsupported(struct parser *p, const struct statement *s);
bool sg_ptx_operands(struct parser *p, const struct statement *s, uint32_t count);

/*
 * decode_spin.c: sg_ptx_note_plainness() is called after each statement. sg_ptx_is_spin() returns
 * whether a branch back to `label`, in a body that is plain from plain_from on, closes a loop that
 * waits for a clock.
 */
void sg_ptx_note_plainness(struct parser *p, const struct statement *s);
bool sg_ptx_is_spin(const struct parser *p, uint32_t branch, uint32_t plain_from, const char *label,
	uint32_t len);

/* decode_half.c: other decoders call these once they know the type. */
void sg_ptx_emit_half(struct parser *p, struct statement *s, enum half_op op, enum ptx_type type);
void sg_ptx_decode_half_setp(
	struct parser *p, struct statement *s, enum ptx_type type, enum compare cmp, op_fn combine);
void sg_ptx_decode_half_set(struct parser *p, struct statement *s, enum ptx_type to,
	enum ptx_type type, enum compare cmp, op_fn combine);
void sg_ptx_decode_half_pack(
	struct parser *p, struct statement *s, enum ptx_type to, enum ptx_type from);

/*
 * decode.c: sg_ptx_find_opcode() returns false, with an error that names the opcode, if there is no
 * decoder. sg_ptx_decode() emits the statement's instructions, or fails.
 */
bool sg_ptx_find_opcode(struct parser *p, struct statement *s);
void sg_ptx_decode(struct parser *p, struct statement *s);

/* A decoder of decode_*.c; `arg` is passed to decode(). */
struct opcode {
	const char *name;
	void (*decode)(struct parser *p, struct statement *s, int arg);
	int arg;
};
/* Each returns a table of opcodes that ends with a NULL name. */
const struct opcode *sg_ptx_opcodes_arith(void);
const struct opcode *sg_ptx_opcodes_data(void);
const struct opcode *sg_ptx_opcodes_control(void);
const struct opcode *sg_ptx_opcodes_async(void);
void sg_ptx_decode_call(struct parser *p, struct statement *s);
