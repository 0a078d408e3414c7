/* Calls that are not implemented return an error that says so. */
#include "check.h"

int main()
{
	cudaExternalMemory_t memory;
	cudaExternalMemoryHandleDesc desc = {};
	cudaAsyncCallbackHandle_t handle;
	const void *table;
	cudaUUID_t id = {};

	EXPECT_ERROR(cudaImportExternalMemory(&memory, &desc), cudaErrorNotSupported);
	EXPECT_ERROR(
		cudaDeviceRegisterAsyncNotification(0, NULL, NULL, &handle), cudaErrorNotSupported);
	EXPECT_ERROR(cudaGetExportTable(&table, &id), cudaErrorNotSupported);
	EXPECT(cudaGetLastError() == cudaSuccess);
	return passed();
}
