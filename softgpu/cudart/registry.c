/*
 * The registrations that nvcc's host code makes before main(): fat binaries, and for each the
 * addresses by which the program refers to its kernels and variables. Nothing is loaded here,
 * because a constructor must not start a GPU. The calls are documented only by their use in
 * crt/host_runtime.h.
 */
#include <stdlib.h>

#include "softgpu/cudart/rt.h"

static struct {
	pthread_mutex_t lock;
	struct rt_symbol **buckets; /* indexed by a hash of the key; guarded by lock */
	size_t bucket_count, count; /* bucket_count is a power of two; guarded by lock */
	struct rt_image *images;    /* guarded by lock */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define FIRST_BUCKETS 256

static size_t bucket_of(const void *key, size_t count)
{
	return ((uintptr_t)key >> 3) * 0x9e3779b97f4a7c15ull >> 32 & (count - 1);
}

static int grow(void)
{
	size_t count = registry.bucket_count ? 2 * registry.bucket_count : FIRST_BUCKETS;
	struct rt_symbol **buckets = calloc(count, sizeof(struct rt_symbol *)), *next;

	if (!buckets)
		return cudaErrorMemoryAllocation;
	for (size_t i = 0; i < registry.bucket_count; i++) {
		for (struct rt_symbol *s = registry.buckets[i]; s; s = next) {
			size_t at = bucket_of(s->key, count);

			next = s->next;
			s->next = buckets[at];
			buckets[at] = s;
		}
	}
	free(registry.buckets);
	registry.buckets = buckets;
	registry.bucket_count = count;
	return 0;
}

static struct rt_symbol *find_symbol(const void *key)
{
	struct rt_symbol *symbol = NULL;

	if (registry.bucket_count)
		symbol = registry.buckets[bucket_of(key, registry.bucket_count)];
	while (symbol && symbol->key != key)
		symbol = symbol->next;
	return symbol;
}

/*
 * Adds a registration. If an address is registered twice, the later one counts. If memory is short,
 * the address stays unknown, and its use reports that.
 */
static struct rt_symbol *add(const struct rt_symbol *symbol)
{
	struct rt_symbol *added;
	size_t at;

	if (registry.count >= registry.bucket_count && grow())
		return NULL;
	added = malloc(sizeof(*added));
	if (!added)
		return NULL;
	*added = *symbol;
	at = bucket_of(symbol->key, registry.bucket_count);
	added->next = registry.buckets[at];
	registry.buckets[at] = added;
	registry.count++;
	return added;
}

static void add_locked(const struct rt_symbol *symbol)
{
	pthread_mutex_lock(&registry.lock);
	(void)add(symbol);
	pthread_mutex_unlock(&registry.lock);
}

static void remove_image(const struct rt_image *image)
{
	for (size_t i = 0; i < registry.bucket_count; i++) {
		for (struct rt_symbol **at = &registry.buckets[i]; *at;) {
			struct rt_symbol *symbol = *at;

			if (symbol->image != image) {
				at = &symbol->next;
				continue;
			}
			*at = symbol->next;
			free(symbol);
			registry.count--;
		}
	}
}

bool rt_symbol_find(const void *key, struct rt_symbol *ret)
{
	struct rt_symbol *found;

	pthread_mutex_lock(&registry.lock);
	found = find_symbol(key);
	if (found)
		*ret = *found;
	pthread_mutex_unlock(&registry.lock);
	return found;
}

void rt_symbol_cache(const void *key, void *kernel)
{
	struct rt_symbol *found;

	pthread_mutex_lock(&registry.lock);
	found = find_symbol(key);
	if (found)
		found->kernel = kernel;
	pthread_mutex_unlock(&registry.lock);
}

int rt_symbol_add_handle(const void *handle, enum rt_symbol_kind kind)
{
	struct rt_symbol symbol = {.key = handle, .kind = kind}, *known;

	pthread_mutex_lock(&registry.lock);
	known = find_symbol(handle);
	if (known && known->kind >= RT_DRIVER_FUNCTION)
		known->kind = kind; /* the driver has used the address again */
	else
		known = add(&symbol);
	pthread_mutex_unlock(&registry.lock);
	return known ? 0 : cudaErrorMemoryAllocation;
}

const void *rt_symbol_of_function(CUfunction function)
{
	const void *key = NULL;
	CUfunction own;

	pthread_mutex_lock(&registry.lock);
	for (size_t i = 0; !key && i < registry.bucket_count; i++)
		for (struct rt_symbol *s = registry.buckets[i]; s && !key; s = s->next)
			if (s->kind == RT_FUNCTION && s->kernel &&
				!CU(cuKernelGetFunction)(&own, s->kernel) && own == function)
				key = s->key;
	pthread_mutex_unlock(&registry.lock);
	return key;
}

/* Sets the program's pointers to managed variables once their image is loaded. */
void rt_registry_managed(struct rt_image *image, void *library)
{
	CUdeviceptr address;

	pthread_mutex_lock(&registry.lock);
	for (size_t i = 0; i < registry.bucket_count; i++) {
		for (struct rt_symbol *s = registry.buckets[i]; s; s = s->next) {
			if (s->image == image && s->kind == RT_MANAGED && !*s->managed &&
				!CU(cuLibraryGetManaged)(&address, NULL, library, s->name))
				*s->managed = (void *)address;
		}
	}
	pthread_mutex_unlock(&registry.lock);
}

/* Finds the managed memory that the program's pointer `variable` names. */
bool rt_symbol_find_managed(const void *address, struct rt_symbol *ret)
{
	bool found = false;

	pthread_mutex_lock(&registry.lock);
	for (size_t i = 0; !found && i < registry.bucket_count; i++) {
		for (struct rt_symbol *s = registry.buckets[i]; s && !found; s = s->next) {
			found = s->kind == RT_MANAGED && *s->managed == address;
			if (found)
				*ret = *s;
		}
	}
	pthread_mutex_unlock(&registry.lock);
	return found;
}

API void **__cudaRegisterFatBinary(void *wrapper)
{
	struct rt_image *image = rt_image_new(wrapper);

	if (image) {
		pthread_mutex_lock(&registry.lock);
		rt_image_link(image, registry.images);
		registry.images = image;
		pthread_mutex_unlock(&registry.lock);
	}
	return (void **)image;
}

API void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle; /* there is nothing to finish */
}

API void __cudaUnregisterFatBinary(void **handle)
{
	struct rt_image *image = (struct rt_image *)handle, *before;

	if (!image)
		return;
	pthread_mutex_lock(&registry.lock);
	remove_image(image);
	if (registry.images == image) {
		registry.images = rt_image_next(image);
	} else {
		for (before = registry.images; before && rt_image_next(before) != image;)
			before = rt_image_next(before);
		if (before)
			rt_image_link(before, rt_image_next(image));
	}
	pthread_mutex_unlock(&registry.lock);
	rt_image_free(image);
}

API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp_size)
{
	(void)device;
	(void)thread_limit; /* the device code contains it too */
	(void)tid;
	(void)bid;
	(void)block;
	(void)grid;
	(void)warp_size;
	if (handle && host && name)
		add_locked(&(struct rt_symbol){.key = host,
			.kind = RT_FUNCTION,
			.image = (struct rt_image *)handle,
			.name = name});
}

API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
	size_t bytes, int constant, int global)
{
	(void)device;
	(void)ext;
	(void)constant;
	(void)global;
	if (handle && host && name)
		add_locked(&(struct rt_symbol){.key = host,
			.kind = RT_VARIABLE,
			.image = (struct rt_image *)handle,
			.name = name,
			.bytes = bytes});
}

API void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
	int ext, size_t bytes, int constant, int global)
{
	(void)device;
	(void)ext;
	(void)constant;
	(void)global;
	if (handle && host && name)
		add_locked(&(struct rt_symbol){.key = host,
			.kind = RT_MANAGED,
			.image = (struct rt_image *)handle,
			.name = name,
			.bytes = bytes,
			.managed = host});
}

/* Loads an image for its managed variables. Returns whether they can be used. */
API char __cudaInitModule(void **handle)
{
	void *library;
	int error = handle ? rt_image_library((struct rt_image *)handle, &library)
			   : cudaErrorInvalidKernelImage;

	if (!error) /* another thread may have loaded it and not be done */
		rt_registry_managed((struct rt_image *)handle, library);
	return rt_done(error) == 0;
}
