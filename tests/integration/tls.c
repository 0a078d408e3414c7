/* Gives a program 2 MiB of thread-local storage: more than the stack of a library's thread. */
#include <stddef.h>

static __thread volatile char storage[2 << 20];

__attribute__((constructor)) static void use(void)
{
	storage[sizeof(storage) / 2] = 1;
}
