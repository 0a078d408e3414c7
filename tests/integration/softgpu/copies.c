/* Copies and sets of every shape and flavour, and arrays. */
#define ALL_CALLS
#include "cuda.h"

#include "softgpu/driver/copy/copy_abi.h"

#define W 24 /* bytes of a row */
#define H 5
#define D 3
#define P 64 /* host pitch */

static unsigned char in[D][H][P], out[D][H][P];
static CUdeviceptr device;
static size_t pitch;
static CUstream stream;

static void start(void)
{
	begin();
	OK(cuMemAllocPitch_v2(&device, &pitch, W, H * D, 4));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < sizeof(in); i++)
		((unsigned char *)in)[i] = (unsigned char)(i * 7 + 1);
	memset(out, 0, sizeof(out));
}

static void check_rows(unsigned depth, unsigned x, unsigned width)
{
	for (unsigned z = 0; z < depth; z++)
		for (unsigned y = 0; y < H; y++)
			for (unsigned i = 0; i < P; i++)
				CHECK_EQ(out[z][y][i], i >= x && i < x + width ? in[z][y][i] : 0);
}

static CUDA_MEMCPY2D in_2d(void)
{
	return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = P,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = device,
		.dstPitch = pitch,
		.WidthInBytes = W,
		.Height = H};
}

static CUDA_MEMCPY2D out_2d(void)
{
	return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = device,
		.srcPitch = pitch,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = P,
		.WidthInBytes = W,
		.Height = H};
}

TEST(rectangles_keep_their_pitches)
{
	CUresult (*in_calls[])(const void *) = {cuMemcpy2D_v2, cuMemcpy2D_v2_ptds,
		cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds};
	CUDA_MEMCPY2D to, from;

	start();
	for (unsigned i = 0; i < sizeof(in_calls) / sizeof(in_calls[0]); i++) {
		to = in_2d();
		from = out_2d();
		OK(cuMemsetD8_v2(device, 0, pitch * H));
		memset(out, 0, sizeof(out));
		OK(in_calls[i](&to));
		OK(in_calls[i](&from));
		check_rows(1, 0, W);
	}
	/* A part of each row. */
	from.srcXInBytes = from.dstXInBytes = 8;
	from.WidthInBytes = 4;
	memset(out, 0, sizeof(out));
	OK(cuMemcpy2DAsync_v2(&from, stream));
	OK(cuStreamSynchronize(stream));
	check_rows(1, 8, 4);
	memset(out, 0, sizeof(out));
	OK(cuMemcpy2DAsync_v2_ptsz(&from, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	check_rows(1, 8, 4);
	end();
}

TEST(rectangles_that_do_not_fit_are_refused)
{
	CUDA_MEMCPY2D copy;

	start();
	copy = in_2d();
	copy.srcPitch = W - 1;
	CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
	copy = in_2d();
	copy.Height = 10000;
	CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
	copy = in_2d();
	copy.dstMemoryType = 9;
	CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
	copy = in_2d();
	copy.dstDevice = (uint64_t)out; /* not of the device */
	CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
	copy = in_2d();
	copy.srcHost = (void *)device; /* not of the host */
	CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
	copy = in_2d();
	copy.Height = 0;
	OK(cuMemcpy2D_v2(&copy)); /* nothing to do */
	CHECK_EQ(cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
	end();
}

static CUDA_MEMCPY3D in_3d(void)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = P,
		.srcHeight = H,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = device,
		.dstPitch = pitch,
		.dstHeight = H,
		.WidthInBytes = W,
		.Height = H,
		.Depth = D};
}

static CUDA_MEMCPY3D out_3d(void)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = device,
		.srcPitch = pitch,
		.srcHeight = H,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (uint64_t)out,
		.dstPitch = P,
		.dstHeight = H,
		.WidthInBytes = W,
		.Height = H,
		.Depth = D};
}

TEST(boxes_keep_their_slices)
{
	CUDA_MEMCPY3D to, from;

	start();
	to = in_3d();
	from = out_3d();
	OK(cuMemcpy3D_v2(&to));
	OK(cuMemcpy3D_v2_ptds(&from));
	check_rows(D, 0, W);
	memset(out, 0, sizeof(out));
	OK(cuMemsetD8_v2(device, 0, pitch * H * D));
	OK(cuCtxSynchronize());
	OK(cuMemcpy3DAsync_v2(&to, stream));
	OK(cuMemcpy3DAsync_v2(&from, stream));
	OK(cuStreamSynchronize(stream));
	check_rows(D, 0, W);
	memset(out, 0, sizeof(out));
	OK(cuMemcpy3DAsync_v2_ptsz(&from, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	check_rows(D, 0, W);
	from.srcHeight = H - 1;
	CHECK_EQ(cuMemcpy3D_v2(&from), CUDA_ERROR_INVALID_VALUE);
	from = out_3d();
	from.srcLOD = 1;
	CHECK_EQ(cuMemcpy3D_v2(&from), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(peer_copies_need_contexts_that_live)
{
	CUDA_MEMCPY3D_PEER box;
	CUDA_MEMCPY3D from;
	CUdeviceptr other;
	CUcontext second;

	start();
	OK(cuMemcpyHtoD_v2(device, in, W));
	OK(cuCtxCreate_v2(&second, 0, 1));
	OK(cuMemAlloc_v2(&other, 1 << 16));
	OK(cuCtxPopCurrent_v2(NULL));
	OK(cuMemcpyPeer(other, second, device, context, W));
	OK(cuMemcpyPeer_ptds(other + 64, second, other, second, W));
	OK(cuMemcpyPeerAsync(other + 128, second, other + 64, second, W, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyPeerAsync_ptsz(device, context, other + 128, second, W, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	OK(cuMemcpyDtoH_v2(out, device, W));
	CHECK(!memcmp(out, in, W));
	from = out_3d();
	memcpy(&box, &from, sizeof(box));
	box.srcContext = box.dstContext = context;
	box.Height = box.Depth = 1;
	OK(cuMemcpy3DPeer(&box));
	OK(cuMemcpy3DPeer_ptds(&box));
	OK(cuMemcpy3DPeerAsync(&box, stream));
	OK(cuMemcpy3DPeerAsync_ptsz(&box, NULL));
	OK(cuCtxSynchronize());
	OK(cuCtxDestroy_v2(second));
	CHECK_EQ(cuMemcpyPeer(device, context, device, second, W), CUDA_ERROR_INVALID_CONTEXT);
	box.srcContext = second;
	CHECK_EQ(cuMemcpy3DPeer(&box), CUDA_ERROR_INVALID_CONTEXT);
	end();
}

TEST(one_row_copies_have_four_flavours_each)
{
	start();
	OK(cuMemcpyHtoD_v2(device, in, W));
	OK(cuMemcpyHtoD_v2_ptds(device, in, W));
	OK(cuMemcpyDtoD_v2(device + 64, device, W));
	OK(cuMemcpyDtoD_v2_ptds(device + 128, device + 64, W));
	OK(cuMemcpyDtoDAsync_v2(device + 192, device + 128, W, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoDAsync_v2_ptsz(device + 256, device + 192, W, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	OK(cuMemcpy(device + 320, device + 256, W));
	OK(cuMemcpy_ptds(device + 384, device + 320, W));
	OK(cuMemcpyAsync(device + 448, device + 384, W, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyAsync_ptsz(device + 512, device + 448, W, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	OK(cuMemcpyDtoHAsync_v2(out, device + 512, W, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(!memcmp(out, in, W));
	OK(cuMemcpyHtoDAsync_v2(device, in[1], W, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH_v2_ptds(out, device, W));
	CHECK(!memcmp(out, in[1], W));
	OK(cuMemcpyHtoDAsync_v2_ptsz(device, in[2], W, NULL));
	OK(cuMemcpyDtoHAsync_v2_ptsz(out, device, W, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	CHECK(!memcmp(out, in[2], W));
	end();
}

/* Sets 2 rows of 3 elements; what lies between is left alone. */
static void check_set(unsigned bytes, uint32_t value)
{
	unsigned char rows[2][256];

	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH_v2(rows, device, sizeof(rows)));
	for (unsigned y = 0; y < 2; y++) {
		for (unsigned i = 0; i < 3; i++)
			CHECK(!memcmp(&rows[y][i * bytes], &value, bytes));
		CHECK_EQ(rows[y][3 * bytes], 0xee);
	}
	OK(cuMemsetD8_v2(device, 0xee, sizeof(rows)));
	OK(cuCtxSynchronize());
}

TEST(sets_fill_rows_in_every_flavour)
{
	start();
	OK(cuMemsetD8_v2(device, 0xee, 512));
	OK(cuCtxSynchronize());
	OK(cuMemsetD2D8_v2(device, 256, 0x11, 3, 2));
	check_set(1, 0x11);
	OK(cuMemsetD2D8_v2_ptds(device, 256, 0x12, 3, 2));
	check_set(1, 0x12);
	OK(cuMemsetD2D8Async(device, 256, 0x13, 3, 2, stream));
	check_set(1, 0x13);
	OK(cuMemsetD2D8Async_ptsz(device, 256, 0x14, 3, 2, NULL));
	check_set(1, 0x14);
	OK(cuMemsetD2D16_v2(device, 256, 0x2122, 3, 2));
	check_set(2, 0x2122);
	OK(cuMemsetD2D16_v2_ptds(device, 256, 0x2123, 3, 2));
	check_set(2, 0x2123);
	OK(cuMemsetD2D16Async(device, 256, 0x2124, 3, 2, stream));
	check_set(2, 0x2124);
	OK(cuMemsetD2D16Async_ptsz(device, 256, 0x2125, 3, 2, NULL));
	check_set(2, 0x2125);
	OK(cuMemsetD2D32_v2(device, 256, 0x31323334, 3, 2));
	check_set(4, 0x31323334);
	OK(cuMemsetD2D32_v2_ptds(device, 256, 0x31323335, 3, 2));
	check_set(4, 0x31323335);
	OK(cuMemsetD2D32Async(device, 256, 0x31323336, 3, 2, stream));
	check_set(4, 0x31323336);
	OK(cuMemsetD2D32Async_ptsz(device, 256, 0x31323337, 3, 2, NULL));
	check_set(4, 0x31323337);
	CHECK_EQ(cuMemsetD2D32_v2(device, 8, 1, 3, 2), CUDA_ERROR_INVALID_VALUE); /* rows overlap */
	CHECK_EQ(cuMemsetD2D32_v2(device + 2, 256, 1, 3, 2), CUDA_ERROR_INVALID_VALUE);
	end();
}

static unsigned short half_at(CUdeviceptr at)
{
	unsigned short value = 0;

	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH_v2(&value, at, 2));
	return value;
}

TEST(sets_of_one_row_too)
{
	start();
	OK(cuMemsetD8_v2_ptds(device, 0x41, 2));
	CHECK_EQ(half_at(device), 0x4141);
	OK(cuMemsetD8Async(device, 0x42, 2, stream));
	CHECK_EQ(half_at(device), 0x4242);
	OK(cuMemsetD8Async_ptsz(device, 0x43, 2, NULL));
	CHECK_EQ(half_at(device), 0x4343);
	OK(cuMemsetD16_v2(device, 0x5152, 1));
	CHECK_EQ(half_at(device), 0x5152);
	OK(cuMemsetD16_v2_ptds(device, 0x5153, 1));
	CHECK_EQ(half_at(device), 0x5153);
	OK(cuMemsetD16Async(device, 0x5154, 1, stream));
	CHECK_EQ(half_at(device), 0x5154);
	OK(cuMemsetD16Async_ptsz(device, 0x5155, 1, NULL));
	CHECK_EQ(half_at(device), 0x5155);
	OK(cuMemsetD32_v2(device, 0x61626364, 1));
	CHECK_EQ(word_at(device), 0x61626364);
	OK(cuMemsetD32_v2_ptds(device, 0x61626365, 1));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(device), 0x61626365);
	OK(cuMemsetD32Async(device, 0x61626366, 1, stream));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(device), 0x61626366);
	OK(cuMemsetD32Async_ptsz(device, 0x61626367, 1, NULL));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(device), 0x61626367);
	end();
}

TEST(batches_are_checked_as_a_whole)
{
	CUdeviceptr to[2], from[2];
	size_t bytes[2] = {W, W}, indices[2] = {0, 1}, fail = 7;
	CUmemcpyAttributes attributes[2] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
		{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL}};

	start();
	to[0] = device;
	from[0] = (uint64_t)in;
	to[1] = device + 512;
	from[1] = (uint64_t)in[1];
	OK(cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 2, &fail, stream));
	CHECK_EQ(fail, SIZE_MAX);
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH_v2(out, device + 512, W));
	CHECK(!memcmp(out, in[1], W));
	to[1] = (uint64_t)out[1];
	from[1] = device;
	OK(cuMemcpyBatchAsync_v2(to, from, bytes, 2, attributes, indices, 2, stream));
	OK(cuMemcpyBatchAsync_v2_ptsz(to, from, bytes, 2, attributes, indices, 2, NULL));
	OK(cuMemcpyBatchAsync_ptsz(to, from, bytes, 2, attributes, indices, 2, &fail, NULL));
	OK(cuCtxSynchronize());
	CHECK(!memcmp(out[1], in, W));
	/* The default stream, wrong attributes, one copy that cannot be. */
	CHECK_EQ(cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 2, &fail, NULL),
		CUDA_ERROR_INVALID_VALUE);
	indices[0] = 1;
	CHECK_EQ(cuMemcpyBatchAsync_v2(to, from, bytes, 2, attributes, indices, 1, stream),
		CUDA_ERROR_INVALID_VALUE);
	indices[0] = 0;
	bytes[1] = 1 << 30;
	CHECK_EQ(cuMemcpyBatchAsync(to, from, bytes, 2, attributes, indices, 2, &fail, stream),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(fail, 1);
	end();
}

TEST(batches_of_boxes)
{
	CUDA_MEMCPY3D_BATCH_OP op = {.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER},
		.dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER},
		.extent = {W, H, D},
		.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	size_t fail;

	start();
	op.src.op.ptr.ptr = (uint64_t)in;
	op.src.op.ptr.rowLength = P;
	op.src.op.ptr.layerHeight = H;
	op.dst.op.ptr.ptr = device;
	op.dst.op.ptr.rowLength = pitch;
	OK(cuMemcpy3DBatchAsync(1, &op, &fail, 0, stream));
	OK(cuStreamSynchronize(stream));
	op.src = op.dst;
	op.dst.op.ptr.ptr = (uint64_t)out;
	op.dst.op.ptr.rowLength = P;
	OK(cuMemcpy3DBatchAsync_v2(1, &op, 0, stream));
	OK(cuStreamSynchronize(stream));
	check_rows(D, 0, W);
	memset(out, 0, sizeof(out));
	OK(cuMemcpy3DBatchAsync_ptsz(1, &op, &fail, 0, NULL));
	OK(cuMemcpy3DBatchAsync_v2_ptsz(1, &op, 0, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	check_rows(D, 0, W);
	op.srcAccessOrder = 0;
	CHECK_EQ(cuMemcpy3DBatchAsync(1, &op, &fail, 0, stream), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(fail, 0);
	end();
}

/* -- arrays -- */

TEST(arrays_take_and_give_rows)
{
	CUDA_ARRAY_DESCRIPTOR flat = {W / 4, H, CU_AD_FORMAT_UNSIGNED_INT32, 1}, told;
	CUDA_ARRAY3D_DESCRIPTOR told_3d;
	CUDA_MEMCPY2D copy;
	void *array;
	size_t before, after;

	start();
	OK(cuMemGetInfo_v2(&before, NULL));
	OK(cuArrayCreate_v2(&array, &flat));
	OK(cuMemGetInfo_v2(&after, NULL));
	CHECK(after <= before);
	OK(cuArrayGetDescriptor_v2(&told, array));
	CHECK(!memcmp(&told, &flat, sizeof(told)));
	OK(cuArray3DGetDescriptor_v2(&told_3d, array));
	CHECK_EQ(told_3d.Height, H);
	copy = in_2d();
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	OK(cuMemcpy2D_v2(&copy));
	copy = out_2d();
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	OK(cuMemcpy2D_v2(&copy));
	check_rows(1, 0, W);
	copy.WidthInBytes = W + 4;
	CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE); /* beyond its edge */
	copy.WidthInBytes = 2;
	CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE); /* half an element */
	CHECK_EQ(cuArrayGetPlane(&array, array, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuArrayGetMemoryRequirements(&told_3d, array, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuArrayGetSparseProperties(&told_3d, array), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(array));
	CHECK_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_HANDLE);
	end();
}

TEST(arrays_of_one_dimension_have_copies_of_their_own)
{
	CUDA_ARRAY_DESCRIPTOR row = {256, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
	void *a, *b;

	start();
	OK(cuArrayCreate_v2(&a, &row));
	OK(cuArrayCreate_v2(&b, &row));
	OK(cuMemcpyHtoA_v2(a, 4, in, W));
	OK(cuMemcpyAtoA_v2(b, 8, a, 4, W));
	OK(cuMemcpyAtoA_v2_ptds(b, 100, b, 8, W));
	OK(cuMemcpyAtoD_v2(device, b, 100, W));
	OK(cuMemcpyDtoA_v2(a, 0, device, W));
	OK(cuMemcpyAtoH_v2(out, a, 0, W));
	CHECK(!memcmp(out, in, W));
	OK(cuMemcpyHtoA_v2_ptds(a, 0, in[1], W));
	OK(cuMemcpyAtoD_v2_ptds(device, a, 0, W));
	OK(cuMemcpyDtoA_v2_ptds(b, 0, device, W));
	OK(cuMemcpyAtoH_v2_ptds(out, b, 0, W));
	CHECK(!memcmp(out, in[1], W));
	OK(cuMemcpyHtoAAsync_v2(a, 0, in[2], W, stream));
	OK(cuMemcpyAtoHAsync_v2(out, a, 0, W, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(!memcmp(out, in[2], W));
	OK(cuMemcpyHtoAAsync_v2_ptsz(a, 0, in[0], W, NULL));
	OK(cuMemcpyAtoHAsync_v2_ptsz(out, a, 0, W, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	CHECK(!memcmp(out, in[0], W));
	CHECK_EQ(cuMemcpyHtoA_v2(a, 250, in, W), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(arrays_have_shapes_that_are_allowed)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {8, 8, 6, CU_AD_FORMAT_FLOAT, 4, 0};
	void *array, *level, *mipmap;

	start();
	OK(cuArray3DCreate_v2(&array, &d));
	d.Flags = CUDA_ARRAY3D_CUBEMAP;
	OK(cuArray3DCreate_v2(&array, &d));
	d.Width = 9;
	CHECK_EQ(cuArray3DCreate_v2(&array, &d), CUDA_ERROR_INVALID_VALUE); /* not square */
	d = (CUDA_ARRAY3D_DESCRIPTOR){8, 0, 4, CU_AD_FORMAT_HALF, 2, 0};
	CHECK_EQ(cuArray3DCreate_v2(&array, &d), CUDA_ERROR_INVALID_VALUE);
	d.Flags = CUDA_ARRAY3D_LAYERED;
	OK(cuArray3DCreate_v2(&array, &d));
	d = (CUDA_ARRAY3D_DESCRIPTOR){8, 8, 0, CU_AD_FORMAT_HALF, 3, 0};
	CHECK_EQ(cuArray3DCreate_v2(&array, &d), CUDA_ERROR_INVALID_VALUE);
	d = (CUDA_ARRAY3D_DESCRIPTOR){8, 8, 0, 0x91, 1, 0};
	CHECK_EQ(cuArray3DCreate_v2(&array, &d), CUDA_ERROR_NOT_SUPPORTED);
	d = (CUDA_ARRAY3D_DESCRIPTOR){200000, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
	CHECK_EQ(cuArray3DCreate_v2(&array, &d), CUDA_ERROR_INVALID_VALUE);
	d = (CUDA_ARRAY3D_DESCRIPTOR){8, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
	OK(cuMipmappedArrayCreate(&mipmap, &d, 100));
	OK(cuMipmappedArrayGetLevel(&level, mipmap, 3));
	OK(cuArray3DGetDescriptor_v2(&d, level));
	CHECK_EQ(d.Width, 1);
	CHECK_EQ(cuMipmappedArrayGetLevel(&level, mipmap, 4), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuMipmappedArrayGetMemoryRequirements(&d, mipmap, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMipmappedArrayGetSparseProperties(&d, mipmap), CUDA_ERROR_INVALID_VALUE);
	OK(cuMipmappedArrayDestroy(mipmap));
	CHECK_EQ(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
	end();
}
