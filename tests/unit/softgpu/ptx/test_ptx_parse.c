/* The parser's result for a module, and that each refusal quotes its text and line. */
#include "unit/softgpu/ptx/ptx_bench.h"

#include <errno.h>

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static struct sg_ptx_module *parse(const char *text)
{
	struct sg_ptx_module *m = NULL;
	struct td_err err = {0};

	if (sg_ptx_module_new(text, strlen(text), &err, &m))
		test_fail(__FILE__, __LINE__, "%s", err.msg);
	return m;
}

static void refuse(const char *text, const char *message)
{
	struct sg_ptx_module *m = NULL;
	struct td_err err = {0};

	CHECK_EQ(sg_ptx_module_new(text, strlen(text), &err, &m), -EINVAL);
	CHECK(!m);
	CHECK_STR(err.msg, message);
}

static void write_statement(char *text, size_t size, const char *statement)
{
	snprintf(text, size,
		HEAD
		".entry f() { .reg .pred %%p<3>; .reg .f32 %%f<4>; .reg .b32 %%r<9>; .reg .b64 "
		"%%rd<9>;\n%s }\n",
		statement);
}

/* A statement on line 5 of a kernel, with which no module can be made. */
static void malformed_statement(const char *statement, const char *message)
{
	char text[1024];

	write_statement(text, sizeof(text), statement);
	refuse(text, message);
}

/* One that is understood to be what is not here: the kernel says so, the module is there. */
static void refuse_statement(const char *statement, const char *message)
{
	const struct sg_ptx_function *f;
	struct sg_ptx_module *m;
	char text[1024];

	write_statement(text, sizeof(text), statement);
	m = parse(text);
	f = sg_ptx_module_function(m, 0);
	CHECK(f && f->refusal);
	CHECK_STR(f->refusal, message);
	sg_ptx_module_free(m);
}

TEST(functions_tell_their_parameters_and_needs)
{
	struct sg_ptx_module *m = parse(
		HEAD ".visible .entry f(.param .u8 a, .param .align 16 .b8 b[20], .param .f64 c)\n"
		     ".maxntid 8, 4, 2\n.minnctapersm 2\n{ .shared .align 8 .b8 s[24];\n"
		     ".local .b32 x[5]; .reg .b64 %rd<4>; ret; }\n"
		     ".entry g() .reqntid 64 { ret; }\n");
	const struct sg_ptx_function *f = sg_ptx_module_function(m, 0);

	CHECK_EQ(sg_ptx_module_target(m), 90);
	CHECK_EQ(sg_ptx_module_version(m), 80);
	CHECK_STR(f->name, "f");
	CHECK_EQ(f->param_count, 3);
	CHECK_EQ(f->params[1].offset, 16);
	CHECK_EQ(f->params[1].size, 20);
	CHECK_EQ(f->params[1].align, 16);
	CHECK_EQ(f->params[2].offset, 40);
	CHECK_EQ(f->param_bytes, 48);
	CHECK_EQ(f->shared_bytes, 24);
	CHECK_EQ(f->local_bytes, 20);
	CHECK_EQ(f->max_threads, 64);
	CHECK_EQ(sg_ptx_module_function(m, 1)->max_threads, 64);
	CHECK(!sg_ptx_module_function(m, 2));
	CHECK(sg_ptx_module_find_function(m, "g") == sg_ptx_module_function(m, 1));
	CHECK(!sg_ptx_module_find_function(m, "h"));
	sg_ptx_module_free(m);
}

TEST(variables_tell_size_and_initial_bytes)
{
	static const uint8_t want[8] = {1, 0, 0xff, 0xff};
	struct sg_ptx_module *m = parse(HEAD ".visible .global .align 8 .u16 a[4] = {1, -1};\n"
					     ".const .f32 b = 0f3F800000;\n"
					     ".global .u64 c[2] = {generic(a)+2, b};\n"
					     ".global .attribute(.managed) .b32 d;\n");
	uint8_t bytes[16];
	uint64_t c[2];

	CHECK_EQ(sg_ptx_module_variable(m, 0)->size, 8);
	CHECK_EQ(sg_ptx_module_variable(m, 0)->align, 8);
	CHECK(sg_ptx_module_variable(m, 1)->constant);
	CHECK(sg_ptx_module_variable(m, 3)->managed);
	CHECK(!sg_ptx_module_variable(m, 3)->initialised);
	CHECK_EQ(sg_ptx_module_find_variable(m, "c"), 2);
	CHECK_EQ(sg_ptx_module_find_variable(m, "e"), -1);
	sg_ptx_module_initial(m, 0, bytes);
	CHECK(!memcmp(bytes, want, 8));
	sg_ptx_module_bind(m, 0, 0x1000);
	sg_ptx_module_bind(m, 1, 0x2000);
	sg_ptx_module_initial(m, 2, c);
	CHECK_EQ(c[0], 0x1002);
	CHECK_EQ(c[1], 0x2000);
	sg_ptx_module_free(m);
}

TEST(debug_information_and_hints_are_read_over)
{
	sg_ptx_module_free(parse(
		HEAD ".file 1 \"a.cu\", 1700000000, 42\n.file 2 \"b.cu\"\n"
		     ".entry f(.param .u64 .ptr .global .align 4 p) .noreturn {\n"
		     ".loc 1 3 5\n.loc 2 9 1, function_name $L__info_string0, inlined_at 1 30 2\n"
		     "$L1: .pragma \"nounroll\";\n prefetch.global.L2 [p]; bra.uni $L1; }\n"
		     ".section .debug_str { $L__info_string0: .b8 102, 0 }\n"));
}

TEST(unknown_opcodes_modifiers_and_types_are_named_with_their_line)
{
	refuse_statement("wgmma.mma_async.sync.aligned;",
		"line 5: opcode \"wgmma.mma_async\" is not supported");
	refuse_statement("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 %r1, %r2;",
		"line 5: opcode \"mma.sync\" is not supported");
	refuse_statement("add.frob.s32 %r1, %r2, %r3;",
		"line 5: modifier \".frob\" of \"add.frob.s32\" is not supported");
	refuse_statement(
		"add.s8 %r1, %r2, %r3;", "line 5: instruction \"add.s8\" is not supported");
	refuse_statement("shfl.up.b32 %r1, %r2, 1, 0;",
		"line 5: instruction \"shfl.up.b32\" is not supported");
	refuse_statement("atom.global.min.noftz.f16 %r1, [%rd1], %r2;",
		"line 5: instruction \"atom.global.min.noftz.f16\" is not supported");
	refuse_statement(".reg .e4m3 %h;", "line 5: type \".e4m3\" is not supported");
	refuse_statement("cvt.rn.satfinite.e4m3x2.f32 %r1, %f1, %f2;",
		"line 5: instruction \"cvt.rn.satfinite.e4m3x2.f32\" is not supported");
	refuse_statement("tex.2d.v4.f32.f32 {%f1, %f1, %f1, %f1}, [t, {%f2, %f3}];",
		"line 5: opcode \"tex.2d\" is not supported");
	refuse_statement("sust.b.2d.b32.trap [s, {%r1, %r2}], {%r3};",
		"line 5: opcode \"sust.b\" is not supported");
	refuse_statement("tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd1], %r1;",
		"line 5: opcode \"tcgen05.alloc\" is not supported");
	refuse_statement("cp.async.bulk.tensor.2d.shared::cluster.global.tile [%rd1], [%rd2, {%r1, "
			 "%r2}], [%rd3];",
		"line 5: instruction \"cp.async.bulk.tensor.2d.shared::cluster.global.tile\" is "
		"not supported");
	refuse_statement(".tex .u64 t;", "line 5: directive \".tex\" is not supported");
	refuse(HEAD ".tex .u64 t;", "line 4: directive \".tex\" is not supported");
	refuse(HEAD ".global .e5m2 t;", "line 4: type \".e5m2\" is not supported");
}

TEST(a_refused_function_leaves_its_module_alone)
{
	static const char text[] =
		HEAD ".func g() { .reg .b32 %r<3>; { .reg .b32 x; {\nwmma.mma {%r1}, {%r2}; } }\n"
		     " call nowhere; }\n"
		     ".entry f() { call g; ret; }\n"
		     ".entry h(.param .b64 p) .maxntid 64 {\n.shared .b32 s[4]; tex.1d q; bra L; "
		     "L: ret; }\n"
		     ".entry k() { .reg .b32 x; mov.b32 x, 1; ret; }\n";
	struct bench b = {0};
	uint64_t p = 0;

	bench_load(&b, text, sizeof(text));
	CHECK_EQ(bench_run(&b, "k", NULL), 0);
	CHECK(!b.launch.function->refusal);
	CHECK_EQ(bench_run(&b, "h", &p), SG_PTX_UNSUPPORTED);
	CHECK_STR(b.launch.function->refusal, "line 9: opcode \"tex.1d\" is not supported");
	CHECK_EQ(b.launch.function->param_bytes, 8);
	CHECK_EQ(b.launch.function->max_threads, 64);
	CHECK_EQ(b.result.fault_line, 9);
	CHECK_EQ(bench_run(&b, "f", NULL), SG_PTX_UNSUPPORTED);
	CHECK(!b.launch.function->refusal);
	CHECK_EQ(b.result.fault_line, 5);
	bench_deinit(&b);
	refuse(HEAD ".entry f() {\ntex.1d q;\n", "line 6: the text ends where \"}\" is expected");
}

/*
 * Two parts, as nvcc -rdc makes them: each has a string and a function of its own with the same
 * names.
 */
TEST(parts_are_linked_by_what_they_show)
{
	static const char text[] = HEAD
		".extern .global .align 4 .u32 there; .global .u32 own = 100; .visible .global "
		".u32 here = 3;\n"
		".extern .global .align 4 .b8 list[];\n"
		".extern .func (.param .b32 r) other(.param .b32 a);\n"
		".weak .func (.param .b32 r) both(.param .b32 a) { .reg .b32 x; mov.b32 x, 1; "
		"st.param.b32 [r], x; ret; }\n"
		".func (.param .b32 r) mine(.param .b32 a) { .reg .b32 x; mov.b32 x, 50; "
		"st.param.b32 [r], x; ret; }\n"
		".visible .entry f(.param .u64 p) { .reg .b32 %r<9>; .reg .b64 %rd1; ld.param.u64 "
		"%rd1, [p];\n"
		"ld.global.u32 %r1, [there]; ld.global.u32 %r2, [own]; ld.global.u32 %r6, "
		"[list+4];\n"
		"{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call (y), other, (x); "
		"ld.param.b32 %r3, [y];\n"
		"call (y), both, (x); ld.param.b32 %r4, [y]; call (y), mine, (x); ld.param.b32 "
		"%r5, [y]; }\n"
		"st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4}; st.global.v2.u32 [%rd1+16], {%r5, "
		"%r6}; ret; }\n" HEAD ".visible .global .u32 there = 7; .global .u32 own = 200; "
		".extern .global .u32 here;\n"
		".visible .global .u32 list[2] = {8, 9}; .weak .global .u32 here = 4;\n"
		".weak .func (.param .b32 r) both(.param .b32 a) .noreturn { .reg .b32 x; { "
		"mov.b32 x, 2; } st.param.b32 [r], x; ret; }\n"
		".func (.param .b32 r) mine(.param .b32 a) { .reg .b32 x; ld.global.u32 x, [own]; "
		"st.param.b32 [r], x; ret; }\n"
		".visible .func (.param .b32 r) other(.param .b32 a) { .reg .b32 %r<4>; .reg .b32 "
		"q; ld.param.b32 %r1, [a];\n"
		"ld.global.u32 q, [here]; add.u32 %r1, %r1, q; { .param .b32 x; .param .b32 y; "
		"st.param.b32 [x], %r1; call (y), mine, (x);\n"
		"ld.param.b32 %r2, [y]; } add.u32 %r1, %r1, %r2; st.param.b32 [r], %r1; ret; }\n";
	struct bench b = {0};
	uint64_t p;
	int *at;

	bench_load(&b, text, sizeof(text));
	p = bench_alloc(&b, 32);
	at = bench_host(&b, p);
	bench_grid(&b, 1, 1);
	CHECK_EQ(bench_run(&b, "f", &p), 0);
	CHECK_EQ(at[0], 7);
	CHECK_EQ(at[1], 100);
	CHECK_EQ(at[2], 7 + 3 + 200);
	CHECK_EQ(at[3], 1);
	CHECK_EQ(at[4], 50);
	CHECK_EQ(at[5], 9);
	bench_deinit(&b);
	refuse(HEAD ".visible .global .u32 x;\n" HEAD ".visible .global .u32 x;\n",
		"line 8: \"x\" is declared twice");
	refuse(HEAD ".visible .func x() { ret; }\n" HEAD ".visible .func x() { ret; }\n",
		"line 8: \"x\" is declared twice");
	refuse(HEAD ".global .u32 x;\n" HEAD ".visible .entry f() { .reg .b32 y; mov.u32 y, x; }\n",
		"line 8: operand \"x\" does not fit here");
}

TEST(malformed_text_is_quoted)
{
	refuse("", "line 1: the text has no \".version\"");
	refuse(HEAD ".entry f() {", "line 4: the text ends where a statement is expected");
	refuse(HEAD ".entry () {}", "line 4: \"(\" where a function's name is expected");
	malformed_statement(
		"add.s32 %r1, %r2;", "line 5: \"add.s32\" has 2 operands where 3 are expected");
	malformed_statement("mov.u32 %r1, %r9;", "line 5: register \"%r9\" is not declared");
	malformed_statement("bra nowhere;", "line 5: label \"nowhere\" is not defined");
	malformed_statement("a: a: ret;", "line 5: label \"a\" is defined twice");
	malformed_statement(".reg .b32 x, x;", "line 5: \"x\" is declared twice");
	malformed_statement("mov.u32 %r1, 0x;", "line 5: \"0x\" where an operand is expected");
	malformed_statement("mov.u32 %r1, 99999999999999999999;",
		"line 5: \"9999999999999999999\" where an operand is expected");
	malformed_statement("mov.f32 %f1, 1;", "line 5: operand \"1\" does not fit here");
	malformed_statement("mov.u32 %p1, %r1;", "line 5: operand \"%p1\" does not fit here");
	malformed_statement("mov.b64 %rd1, {{%r1, %r1}, %r1};", "line 5: a vector in a vector");
	malformed_statement("mov.u32 %tid.x, %r1;", "line 5: operand \"%tid.x\" does not fit here");
	malformed_statement("@%r1 ret;", "line 5: operand \"%r1\" does not fit here");
	refuse(HEAD ".global .u32 x = {1, 2};", "line 4: too many initial values for \"x\"");
	refuse(HEAD ".global .align 3 .u32 x;",
		"line 4: alignment 3 is not a power of two up to 4096");
}

TEST(what_belongs_to_other_modules_is_refused_by_name)
{
	refuse(HEAD ".extern .func vprintf(.param .b64 a);\n"
		    ".entry f() { .param .b64 x;\ncall vprintf, (x); }\n",
		"line 6: function \"vprintf\" is not defined");
	refuse(HEAD ".extern .func (.param .b64 r) vprintf(.param .b64 a, .param .b64 b);\n"
		    ".entry f() { .param .b64 x;\ncall (x), vprintf, (x, x); }\n",
		"line 6: function \"vprintf\" is not defined");
	refuse(HEAD ".extern .global .u32 x;", "line 4: variable \"x\" is not defined");
	malformed_statement(
		"call %rd1, (%r1), proto;", "line 5: argument \"%r1\" is not supported");
	malformed_statement("call %r1, proto;", "line 5: call of \"%r1\" is not supported");
	malformed_statement("brx.idx %r1, nowhere;", "line 5: table \"nowhere\" is not defined");
	refuse(HEAD ".global .u32 x[2][2] = {{1, 2}, {3, 4}};",
		"line 4: nested initial values of \"x\" are not supported");
	refuse(HEAD ".global .u64 x = 0xff(x);", "line 4: \"(\" where \";\" is expected");
	refuse(HEAD ".func f(.param .b32 a) { ret; }\n.entry g() { .param .b64 x;\ncall f, (x); }",
		"line 6: argument of another size for \"f\"");
}

TEST(sizes_have_ends)
{
	malformed_statement(
		".reg .b32 %x<70000>;", "line 5: function \"f\" has more than 65536 registers");
	malformed_statement(".local .b8 x[600000];",
		"line 5: function \"f\" needs more than 524288 bytes of local memory");
	malformed_statement(
		".shared .b8 x[300000];", "line 5: shared variable \"x\" is unsized or too large");
	refuse(HEAD ".global .b8 x[99999999999999];", "line 4: array \"x\" is too large");
	refuse(HEAD ".entry f(.param .b8 x[40000]) { ret; }",
		"line 4: parameter is unsized or too large");
	refuse(HEAD ".entry f() .maxntid 2048 { ret; }",
		"line 4: function \"f\" asks for too many threads");
	malformed_statement(
		".shared .b8 x[4]; ld.shared.u32 %r1, [x+4];", "line 5: access beyond \"x\"");
}
