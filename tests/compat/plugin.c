/* A library that is linked with the driver, as Python extensions are. */
int cuLaunchKernel(void);
__attribute__((visibility("default"))) void *plugin_launch(void);

void *plugin_launch(void)
{
	return (void *)cuLaunchKernel;
}
