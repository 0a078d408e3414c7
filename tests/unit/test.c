/* The runner behind test.h: TAP on stdout, exit status 1 when a case failed. */
#include "test.h"

#include <stdarg.h>

struct test_case *test_cases;
jmp_buf test_exit;

static struct test_case **tail = &test_cases;
static char why[512];

void test_register(struct test_case *c)
{
	*tail = c;
	tail = &c->next;
}

void test_fail(const char *file, int line, const char *format, ...)
{
	int n = snprintf(why, sizeof(why), "%s:%d: ", file, line);
	va_list args;

	va_start(args, format);
	vsnprintf(why + n, sizeof(why) - (size_t)n, format, args);
	va_end(args);
	longjmp(test_exit, 1);
}

void test_skip(const char *reason)
{
	snprintf(why, sizeof(why), "%s", reason);
	longjmp(test_exit, 2);
}

static int chosen(const char *name, int argc, char **argv)
{
	if (argc < 2)
		return 1;
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	volatile int n = 0, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct test_case *volatile c = test_cases; c; c = c->next) {
		if (!chosen(c->name, argc, argv))
			continue;
		n++;
		switch (setjmp(test_exit)) {
		case 0:
			c->run();
			printf("ok %d - %s\n", n, c->name);
			break;
		case 1:
			printf("not ok %d - %s\n# %s\n", n, c->name, why);
			failed++;
			break;
		default: printf("ok %d - %s # SKIP %s\n", n, c->name, why); break;
		}
	}
	printf("1..%d\n", n);
	return failed ? 1 : 0;
}
