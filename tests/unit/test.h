/*
 * A test program: include this, write TEST(reads_as_a_sentence) { CHECK(...); } blocks, link.
 * Output is TAP.
 *
 * CHECK* report the line and end the case. SKIP("reason") ends it as skipped: never counted as
 * passed. With arguments, runs only the cases that are named. Each case runs in the same process,
 * in file order.
 */
#pragma once

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_case {
	const char *name;
	void (*run)(void);
	struct test_case *next;
};

extern struct test_case *test_cases;
extern jmp_buf test_exit;

void test_register(struct test_case *c);
void test_fail(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));
void test_skip(const char *reason) __attribute__((noreturn));

#define TEST(id)                                                                                   \
	static void test_##id(void);                                                               \
	__attribute__((constructor)) static void test_register_##id(void)                          \
	{                                                                                          \
		static struct test_case c = {#id, test_##id, NULL};                                \
		test_register(&c);                                                                 \
	}                                                                                          \
	static void test_##id(void)

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			test_fail(__FILE__, __LINE__, "%s", #cond);                                \
	} while (0)

#define CHECK_EQ(a, b)                                                                             \
	do {                                                                                       \
		long long check_a_ = (long long)(a), check_b_ = (long long)(b);                    \
		if (check_a_ != check_b_)                                                          \
			test_fail(__FILE__, __LINE__, "%s == %s: %lld, expected %lld", #a, #b,     \
				check_a_, check_b_);                                               \
	} while (0)

#define CHECK_STR(a, b)                                                                            \
	do {                                                                                       \
		const char *check_a_ = (a), *check_b_ = (b);                                       \
		if (strcmp(check_a_, check_b_))                                                    \
			test_fail(__FILE__, __LINE__, "%s: \"%s\", expected \"%s\"", #a, check_a_, \
				check_b_);                                                         \
	} while (0)

#define SKIP(reason) test_skip(reason)
