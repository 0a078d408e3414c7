/* The published table of driver functions; see driver.h. */
#include "preload/driver/driver.h"

#include <stdatomic.h>
#include <stddef.h>

static const struct td_driver *_Atomic driver;

const struct td_driver *td_driver(void)
{
	return atomic_load_explicit(&driver, memory_order_acquire);
}

void td_driver_set(const struct td_driver *d)
{
	atomic_store_explicit(&driver, d, memory_order_release);
}
