/* Threads whose stack is smaller than the program's thread-local storage. */
#include <pthread.h>
#include <stdbool.h>

#include "base/stack.h"
#include "test.h"

#define TLS   ((size_t)2 << 20)
#define STACK ((size_t)128 << 10)

static __thread volatile char storage[TLS];

/* As much of the stack as was asked for, less what the C library keeps of it. */
static void *use_stack(void *arg)
{
	volatile char room[STACK - (16 << 10)];

	for (size_t i = 0; i < sizeof(room); i += 1024)
		room[i] = storage[i] = 1;
	*(bool *)arg = true;
	return NULL;
}

static int start(size_t stack_bytes, bool *ret_ran)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r;

	CHECK(!pthread_attr_init(&attributes));
	CHECK(!pthread_attr_setstacksize(&attributes, stack_bytes));
	r = pthread_create(&thread, &attributes, use_stack, ret_ran);
	pthread_attr_destroy(&attributes);
	if (!r)
		pthread_join(thread, NULL);
	return r;
}

TEST(a_thread_has_the_stack_that_was_asked_for_beside_the_programs_storage)
{
	bool ran = false;

	CHECK(td_stack_bytes(STACK) >= STACK + TLS);
	CHECK(td_stack_bytes(STACK) < STACK + 2 * TLS);
	CHECK_EQ(start(td_stack_bytes(STACK), &ran), 0);
	CHECK(ran);
}
