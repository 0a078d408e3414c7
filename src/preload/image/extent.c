/*
 * Finds the length of a kernel image; see extent.h. The driver has accepted the image, so its
 * headers are valid.
 */
#include "preload/image/extent.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC  0xba55ed50u
#define ONE_FATBIN    1 /* version of a wrapper of one fatbin; version 2 has a list */

static size_t elf_bytes(const char *image)
{
	uint64_t end = sizeof(Elf64_Ehdr), at;
	Elf64_Ehdr head;
	Elf64_Shdr section;

	memcpy(&head, image, sizeof(head));
	at = head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize;
	end = at > end ? at : end;
	at = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
	end = at > end ? at : end;
	for (unsigned i = 0; i < head.e_shnum && head.e_shentsize == sizeof(section); i++) {
		memcpy(&section, image + head.e_shoff + i * sizeof(section), sizeof(section));
		at = section.sh_type == SHT_NOBITS ? 0 : section.sh_offset + section.sh_size;
		end = at > end ? at : end;
	}
	return end;
}

const void *td_image_extent(const void *image, size_t *ret_bytes)
{
	struct {
		uint32_t magic, version;
		const void *data;
	} wrapper;
	struct {
		uint32_t magic;
		uint16_t version, header_bytes;
		uint64_t bytes;
	} fatbin;
	uint32_t magic = 0;

	/* The image is PTX, and may be shorter than a header. */
	if (memchr(image, '\0', sizeof(magic)))
		return NULL;
	memcpy(&magic, image, sizeof(magic));
	if (magic == WRAPPER_MAGIC) {
		memcpy(&wrapper, image, sizeof(wrapper));
		return wrapper.version == ONE_FATBIN ? td_image_extent(wrapper.data, ret_bytes)
						     : NULL;
	}
	if (magic == FATBIN_MAGIC) {
		memcpy(&fatbin, image, sizeof(fatbin));
		*ret_bytes = fatbin.header_bytes + fatbin.bytes;
	} else if (!memcmp(image, ELFMAG, SELFMAG)) {
		*ret_bytes = elf_bytes(image);
	} else {
		*ret_bytes = strlen(image);
	}
	return image;
}
