/* Prints what the library that it is linked with saw before main(); for place.py. */
#include <stdio.h>

extern int early_count;

int main(void)
{
	printf("%d\n", early_count);
	return 0;
}
