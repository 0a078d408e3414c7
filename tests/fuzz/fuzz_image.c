/* Whatever an image says, nothing beside it is read. */
#include <stdlib.h>
#include <string.h>

#include "preload/image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *image = malloc(size ? size : 1);

	if (!image)
		return 0;
	memcpy(image, data, size);
	(void)td_image_data(image, size, true);
	free(image);
	return 0;
}
