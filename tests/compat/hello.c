/* A program that has nothing to do with GPUs: it must run as if libtandem were not there. */
#include <stdio.h>

int main(void)
{
	puts("hello");
	return 7;
}
