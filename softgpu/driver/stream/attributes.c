/* Settings and queries of streams: attributes, the stream's id and its device. */
#include <string.h>

#include "softgpu/driver/driver.h"

/* CUlaunchAttributeValue of cuda.h: 64 bytes. */
union value {
	char bytes[64];
	int number;
};

/*
 * The access policy window and the synchronisation policy are stored and returned; they have no
 * effect.
 */
static int get_attribute(CUstream handle, int id, union value *out, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !out)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	memset(out, 0, sizeof(*out));
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		memcpy(out->bytes, stream->access_window, sizeof(stream->access_window));
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		out->number = stream->sync_policy;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY: out->number = stream->priority; return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static int set_attribute(CUstream handle, int id, const union value *value, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !value)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		memcpy(stream->access_window, value->bytes, sizeof(stream->access_window));
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		if (value->number < 1 || value->number > 4)
			return CUDA_ERROR_INVALID_VALUE;
		stream->sync_policy = value->number;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static int copy_attributes(CUstream to_handle, CUstream from_handle, bool ptsz)
{
	struct CUstream_st *to, *from;
	int r = sg_stream_find(to_handle, ptsz, &to);

	if (!r)
		r = sg_stream_find(from_handle, ptsz, &from);
	/* cuda.h: "Both streams must have the same context." */
	if (!r && to->context != from->context)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	memcpy(to->access_window, from->access_window, sizeof(to->access_window));
	to->sync_policy = from->sync_policy;
	return CUDA_SUCCESS;
}

SG_BOTH(cuStreamGetAttribute, (CUstream stream, int id, union value *out),
	get_attribute(stream, id, out, false), get_attribute(stream, id, out, true))
SG_BOTH(cuStreamSetAttribute, (CUstream stream, int id, const union value *value),
	set_attribute(stream, id, value, false), set_attribute(stream, id, value, true))
SG_BOTH(cuStreamCopyAttributes, (CUstream to, CUstream from), copy_attributes(to, from, false),
	copy_attributes(to, from, true))

static int get_id(CUstream handle, unsigned long long *id, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !id)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*id = stream->id;
	return r;
}

SG_BOTH(cuStreamGetId, (CUstream stream, unsigned long long *id), get_id(stream, id, false),
	get_id(stream, id, true))

static int get_device(CUstream handle, CUdevice *device, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !device)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*device = (CUdevice)stream->context->device;
	return r;
}

SG_BOTH(cuStreamGetDevice, (CUstream stream, CUdevice *device), get_device(stream, device, false),
	get_device(stream, device, true))

/* The second result is the stream's green context. softgpu has none. */
static int get_context(CUstream handle, CUcontext *context, void **green, bool ptsz)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !context)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	*context = stream->context;
	if (green)
		*green = NULL;
	return CUDA_SUCCESS;
}

SG_BOTH(cuStreamGetCtx_v2, (CUstream stream, CUcontext *context, void **green),
	get_context(stream, context, green, false), get_context(stream, context, green, true))

API CUresult cuStreamGetGreenCtx(CUstream handle, void **green)
{
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, false, &stream);

	if (!r && !green)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*green = NULL;
	return r;
}
