/*
 * Records objects in the table when the program makes them, and removes them when it ends them; see
 * rehome.h. These functions replace the driver's in td_real from the time when the driver is
 * loaded. If the process sees only one GPU, without MPS, the driver's functions are put back at the
 * first object. If malloc fails for a row, the process cannot be moved any more (HANDLES).
 */
#include "preload/rehome/objects.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/driver/real.h"
#include "preload/image/extent.h"
#include "preload/image/image.h"
#include "preload/rehome/adapt.h"

/*
 * A larger module's image is not kept. Code of that size usually comes as a library, which needs no
 * copy.
 */
#define IMAGE_MAX (64ull << 20)

static void add(struct td_twin *row, void *handle)
{
	int home = td_rehome_here();
	CUcontext context = NULL;

	if (home < 0 && td_true->cuCtxGetDevice(&home))
		home = -1;
	/* Kernels and libraries belong to no context. */
	if (row->kind != TD_TWIN_KERNEL && row->kind != TD_TWIN_LIBRARY &&
		!td_true->cuCtxGetCurrent(&context))
		row->context = td_rehome_program_context(context);
	row->first = home;
	row->recorded = home;
	if (home < 0 || home >= TD_HOMES_MAX) {
		td_unmovable_note(TD_UNMOVABLE(HANDLES));
		td_twin_release(row);
		return;
	}
	row->handles[home] = handle;
	if (td_twin_add(row))
		return;
	td_unmovable_note(TD_UNMOVABLE(HANDLES));
	td_twin_release(row);
}

/*
 * Called before each call. Returns false if nothing is to be recorded. td_rehome_end must follow.
 */
static bool begin(void)
{
	td_rehome_begin();
	td_adapt_sync();
	return td_rehome_is_possible();
}

/* -- streams and events -- */

static CUresult record_stream(CUresult r, CUstream *stream, unsigned flags, int priority)
{
	struct td_twin row = {.kind = TD_TWIN_STREAM, .flags = flags, .priority = priority};

	if (!r && stream)
		add(&row, *stream);
	td_rehome_end();
	return r;
}

static CUresult record_cuStreamCreate(CUstream *a0, unsigned a1)
{
	bool records = begin();

	return record_stream(td_true->cuStreamCreate(a0, a1), records ? a0 : NULL, a1, 0);
}

static CUresult record_cuStreamCreateWithPriority(CUstream *a0, unsigned a1, int a2)
{
	bool records = begin();

	return record_stream(
		td_true->cuStreamCreateWithPriority(a0, a1, a2), records ? a0 : NULL, a1, a2);
}

static CUresult record_cuGreenCtxStreamCreate(CUstream *a0, void *a1, unsigned a2, int a3)
{
	CUresult r = td_true->cuGreenCtxStreamCreate(a0, a1, a2, a3);

	if (!r)
		td_unmovable_note(TD_UNMOVABLE(GREEN));
	return r;
}

static CUresult record_cuEventCreate(CUevent *a0, unsigned a1)
{
	struct td_twin row = {.kind = TD_TWIN_EVENT, .flags = a1};
	bool records = begin();
	CUresult r = td_true->cuEventCreate(a0, a1);

	if (!r && records && a0)
		add(&row, *a0);
	td_rehome_end();
	return r;
}

/* Ends an object with all its twins. An object without a row is ended in the driver only. */
static CUresult end_all(enum td_twin_kind kind, void *handle, CUresult (*end)(void *handle))
{
	struct td_twin row;
	CUresult r;

	(void)begin();
	/* Another thread may be making a twin of it or of one of its functions. */
	td_twins_keep();
	if (!td_twin_get(kind, handle, &row)) {
		r = end(handle);
	} else {
		/* The twin in use is ended first: if the driver refuses, all of them stay. */
		int here = td_rehome_here() < 0 ? row.first : td_rehome_here();
		void *at_here = row.handles[here] ? row.handles[here] : row.handles[row.first];

		r = end(at_here);
		if (!r && td_twin_remove(kind, handle, &row)) {
			for (unsigned h = 0; h < TD_HOMES_MAX; h++)
				if (row.handles[h] && row.handles[h] != at_here)
					(void)end(row.handles[h]);
			td_twin_release(&row);
		}
	}
	td_twins_let_go();
	td_rehome_end();
	return r;
}

static CUresult end_stream(void *handle)
{
	td_adapt_stream_ends(handle);
	return td_true->cuStreamDestroy_v2(handle);
}

static CUresult end_event(void *handle)
{
	return td_true->cuEventDestroy_v2(handle);
}

static CUresult end_module(void *handle)
{
	return td_true->cuModuleUnload(handle);
}

static CUresult record_cuStreamDestroy(CUstream a0)
{
	return end_all(TD_TWIN_STREAM, a0, end_stream);
}

static CUresult record_cuStreamDestroy_v2(CUstream a0)
{
	return end_all(TD_TWIN_STREAM, a0, end_stream);
}

static CUresult record_cuEventDestroy(CUevent a0)
{
	return end_all(TD_TWIN_EVENT, a0, end_event);
}

static CUresult record_cuEventDestroy_v2(CUevent a0)
{
	return end_all(TD_TWIN_EVENT, a0, end_event);
}

/* -- modules and libraries -- */

static bool has_variables(const void *image, size_t bytes)
{
	struct td_image_data data = td_image_data(image, bytes, true);

	return data.device_bytes || data.managed_bytes || data.unknown;
}

/* image: as it was passed to the driver. */
static void record_module(CUmodule module, const void *image)
{
	struct td_twin row = {.kind = TD_TWIN_MODULE};
	size_t bytes;
	const void *start = td_image_extent(image, &bytes);

	row.has_variables = has_variables(image, SIZE_MAX);
	if (start && bytes <= IMAGE_MAX)
		row.image = malloc(bytes + 1);
	if (row.image) {
		memcpy(row.image, start, bytes);
		((char *)row.image)[bytes] = '\0'; /* PTX ends with a NUL */
		row.image_bytes = bytes;
	}
	add(&row, module);
}

static CUresult record_cuModuleLoadData(CUmodule *a0, const void *a1)
{
	bool records = begin();
	CUresult r = td_true->cuModuleLoadData(a0, a1);

	if (!r && records && a0)
		record_module(*a0, a1);
	td_rehome_end();
	return r;
}

static CUresult record_cuModuleLoadDataEx(
	CUmodule *a0, const void *a1, unsigned a2, int *a3, void **a4)
{
	bool records = begin();
	CUresult r = td_true->cuModuleLoadDataEx(a0, a1, a2, a3, a4);

	if (!r && records && a0)
		record_module(*a0, a1);
	td_rehome_end();
	return r;
}

static CUresult record_cuModuleLoadFatBinary(CUmodule *a0, const void *a1)
{
	bool records = begin();
	CUresult r = td_true->cuModuleLoadFatBinary(a0, a1);

	if (!r && records && a0)
		record_module(*a0, a1);
	td_rehome_end();
	return r;
}

/* Reads a file. Returns NULL if it cannot be read or is too large. The caller frees it. */
static char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	off_t bytes = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	char *image = NULL;
	off_t has = 0;
	ssize_t n = 1;

	if (bytes > 0 && (uint64_t)bytes <= IMAGE_MAX)
		image = malloc((size_t)bytes + 1);
	while (image && n > 0 && has < bytes) {
		n = pread(fd, image + has, (size_t)(bytes - has), has);
		has += n > 0 ? n : 0;
	}
	if (image)
		image[has] = '\0';
	if (fd >= 0)
		close(fd);
	return image;
}

static CUresult record_cuModuleLoad(CUmodule *a0, const char *a1)
{
	bool records = begin();
	CUresult r = td_true->cuModuleLoad(a0, a1);
	struct td_twin lost = {.kind = TD_TWIN_MODULE, .has_variables = true};
	char *image = NULL;

	if (!r && records && a0) {
		image = read_file(a1);
		if (image)
			record_module(*a0, image);
		else
			add(&lost, *a0);
	}
	free(image);
	td_rehome_end();
	return r;
}

static CUresult record_cuModuleUnload(CUmodule a0)
{
	return end_all(TD_TWIN_MODULE, a0, end_module);
}

static CUresult record_cuLibraryLoadData(
	void **a0, const void *a1, int *a2, void **a3, unsigned a4, int *a5, void **a6, unsigned a7)
{
	bool records = begin();
	CUresult r = td_true->cuLibraryLoadData(a0, a1, a2, a3, a4, a5, a6, a7);
	struct td_twin row = {.kind = TD_TWIN_LIBRARY};

	if (!r && records && a0) {
		row.has_variables = has_variables(a1, SIZE_MAX);
		add(&row, *a0);
	}
	td_rehome_end();
	return r;
}

static CUresult record_cuLibraryLoadFromFile(
	void **a0, const char *a1, int *a2, void **a3, unsigned a4, int *a5, void **a6, unsigned a7)
{
	bool records = begin();
	CUresult r = td_true->cuLibraryLoadFromFile(a0, a1, a2, a3, a4, a5, a6, a7);
	struct td_twin row = {.kind = TD_TWIN_LIBRARY};
	char *image = !r && records && a0 ? read_file(a1) : NULL;

	if (!r && records && a0) {
		row.has_variables = !image || has_variables(image, SIZE_MAX);
		add(&row, *a0);
	}
	free(image);
	td_rehome_end();
	return r;
}

static CUresult record_cuLibraryUnload(void *a0)
{
	struct td_twin row;
	CUresult r;

	(void)begin();
	r = td_true->cuLibraryUnload(a0);
	if (!r && td_twin_remove(TD_TWIN_LIBRARY, a0, &row))
		td_twin_release(&row);
	td_rehome_end();
	return r;
}

/* -- functions -- */

static void record_function(CUfunction function, const void *of, const char *name)
{
	struct td_twin row = {.kind = TD_TWIN_FUNCTION, .of = of, .of_library = !name}, known;

	/* For the same function the driver returns the same handle. */
	if (td_twin_get(TD_TWIN_FUNCTION, function, &known))
		return;
	row.name = name ? strdup(name) : NULL;
	if (name && !row.name)
		td_unmovable_note(TD_UNMOVABLE(HANDLES));
	else
		add(&row, function);
}

static CUresult record_cuModuleGetFunction(CUfunction *a0, CUmodule a1, const char *a2)
{
	bool records = begin();
	CUresult r = td_true->cuModuleGetFunction(a0, td_twin_here(TD_TWIN_MODULE, a1), a2);

	if (!r && a0)
		*a0 = td_twin_program(TD_TWIN_FUNCTION, *a0);
	if (!r && records && a0)
		record_function(*a0, td_twin_program(TD_TWIN_MODULE, a1), a2);
	td_rehome_end();
	return r;
}

static CUresult record_cuModuleEnumerateFunctions(CUfunction *a0, unsigned a1, CUmodule a2)
{
	bool records = begin();
	CUresult r = td_true->cuModuleEnumerateFunctions(a0, a1, td_twin_here(TD_TWIN_MODULE, a2));
	const char *name;

	for (unsigned i = 0; !r && records && a0 && i < a1; i++) {
		if (!a0[i])
			continue;
		a0[i] = td_twin_program(TD_TWIN_FUNCTION, a0[i]);
		if (td_true->cuFuncGetName && !td_true->cuFuncGetName(&name, a0[i]))
			record_function(a0[i], td_twin_program(TD_TWIN_MODULE, a2), name);
		else
			td_unmovable_note(TD_UNMOVABLE(HANDLES));
	}
	td_rehome_end();
	return r;
}

static CUresult record_cuKernelGetFunction(CUfunction *a0, void *a1)
{
	bool records = begin();
	CUresult r = td_true->cuKernelGetFunction(a0, a1);

	if (!r && a0)
		*a0 = td_twin_program(TD_TWIN_FUNCTION, *a0);
	if (!r && records && a0)
		record_function(*a0, a1, NULL);
	td_rehome_end();
	return r;
}

static CUresult record_cuLibraryGetModule(CUmodule *a0, void *a1)
{
	struct td_twin row = {.kind = TD_TWIN_MODULE, .of = a1, .of_library = true}, known;
	bool records = begin();
	CUresult r = td_true->cuLibraryGetModule(a0, a1);

	if (!r && a0)
		*a0 = td_twin_program(TD_TWIN_MODULE, *a0);
	if (!r && records && a0 && !td_twin_get(TD_TWIN_MODULE, *a0, &known))
		add(&row, *a0);
	td_rehome_end();
	return r;
}

/*
 * Records an attribute, to set it at the next home too. If there is no row, it has the default
 * value there.
 */
static void record_set(enum td_twin_kind kind, void *handle, int what, int value)
{
	struct td_twin row = {.kind = kind}, known;

	if (kind == TD_TWIN_KERNEL && !td_twin_get(kind, handle, &known))
		add(&row, handle);
	td_twin_set(kind, handle, what, value);
}

#define SETS_FUNCTION(symbol, what, value)                                                         \
	{                                                                                          \
		bool records = begin();                                                            \
		void *here = td_twin_here(TD_TWIN_FUNCTION, a0);                                   \
		CUresult r = td_true->symbol;                                                      \
		if (!r && records)                                                                 \
			record_set(TD_TWIN_FUNCTION, a0, what, value);                             \
		td_rehome_end();                                                                   \
		return r;                                                                          \
	}

static CUresult record_cuFuncSetAttribute(CUfunction a0, int a1, int a2)
	SETS_FUNCTION(cuFuncSetAttribute(here, a1, a2), a1, a2)

		static CUresult record_cuFuncSetCacheConfig(CUfunction a0, int a1)
			SETS_FUNCTION(cuFuncSetCacheConfig(here, a1), TD_TWIN_SET_CACHE, a1)

				static CUresult
	record_cuFuncSetSharedMemConfig(CUfunction a0, int a1)
		SETS_FUNCTION(cuFuncSetSharedMemConfig(here, a1), TD_TWIN_SET_SHARED, a1)

#define SETS_KERNEL(kernel, symbol, what, value)                                                   \
	{                                                                                          \
		bool records = begin();                                                            \
		CUresult r = td_true->symbol;                                                      \
		if (!r && records)                                                                 \
			record_set(TD_TWIN_KERNEL, kernel, what, value);                           \
		td_rehome_end();                                                                   \
		return r;                                                                          \
	}

			static CUresult
	record_cuKernelSetAttribute(int a0, int a1, void *a2, CUdevice a3)
		SETS_KERNEL(a2, cuKernelSetAttribute(a0, a1, a2, td_rehome_device(a3)), a0, a1)

			static CUresult
	record_cuKernelSetCacheConfig(void *a0, int a1, CUdevice a2) SETS_KERNEL(
		a0, cuKernelSetCacheConfig(a0, a1, td_rehome_device(a2)), TD_TWIN_SET_CACHE, a1)

/* -- putting these functions into td_real -- */

#define RECORDED(RECORD)                                                                           \
	RECORD(cuStreamCreate)                                                                     \
	RECORD(cuStreamCreateWithPriority)                                                         \
	RECORD(cuGreenCtxStreamCreate)                                                             \
	RECORD(cuStreamDestroy)                                                                    \
	RECORD(cuStreamDestroy_v2)                                                                 \
	RECORD(cuEventCreate)                                                                      \
	RECORD(cuEventDestroy)                                                                     \
	RECORD(cuEventDestroy_v2)                                                                  \
	RECORD(cuModuleLoad)                                                                       \
	RECORD(cuModuleLoadData)                                                                   \
	RECORD(cuModuleLoadDataEx)                                                                 \
	RECORD(cuModuleLoadFatBinary)                                                              \
	RECORD(cuModuleUnload)                                                                     \
	RECORD(cuModuleGetFunction)                                                                \
	RECORD(cuModuleEnumerateFunctions)                                                         \
	RECORD(cuLibraryLoadData)                                                                  \
	RECORD(cuLibraryLoadFromFile)                                                              \
	RECORD(cuLibraryUnload)                                                                    \
	RECORD(cuLibraryGetModule)                                                                 \
	RECORD(cuKernelGetFunction)                                                                \
	RECORD(cuKernelSetAttribute)                                                               \
	RECORD(cuKernelSetCacheConfig)                                                             \
	RECORD(cuFuncSetAttribute)                                                                 \
	RECORD(cuFuncSetCacheConfig)                                                               \
	RECORD(cuFuncSetSharedMemConfig)

		void td_record_install(bool records)
{
#define RECORD(symbol)                                                                             \
	if (td_true->symbol)                                                                       \
		__atomic_store_n(&td_real.symbol, records ? record_##symbol : td_true->symbol,     \
			__ATOMIC_RELEASE);
	RECORDED(RECORD)
#undef RECORD
}

bool td_record_has(unsigned index)
{
	switch (index) {
#define RECORD(symbol) case TD_SYMBOL_##symbol:
		RECORDED(RECORD)
#undef RECORD
		return true;
	default: return false;
	}
}
