/* The table of objects that have twins, for record.c, adapt.c and twins.c. See rehome.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/rehome/rehome.h"

/* The letters are those of cuda/symbols.def. */
enum td_twin_kind {
	TD_TWIN_CONTEXT = 'c',
	TD_TWIN_STREAM = 's',
	TD_TWIN_EVENT = 'e',
	TD_TWIN_MODULE = 'm',
	TD_TWIN_FUNCTION = 'f',
	TD_TWIN_KERNEL = 'k',  /* of no context; its attributes are set for each device */
	TD_TWIN_LIBRARY = 'l', /* of no context; it may have variables */
};

/* cuFuncSetAttribute and cuFuncSetCacheConfig, of a function or a kernel. */
#define TD_TWIN_SETS_MAX 16
struct td_twin_set {
	int what, value; /* what: a CUfunction_attribute, or one of these: */
};
#define TD_TWIN_SET_CACHE  (-1)
#define TD_TWIN_SET_SHARED (-2)

struct td_twin {
	struct td_twin *next; /* of all */
	enum td_twin_kind kind;
	CUdevice first;                      /* its first home */
	const void *context;                 /* the program's, in which it was made */
	void *_Atomic handles[TD_HOMES_MAX]; /* by home; NULL: none yet */
	/* Written when it is made. */
	unsigned flags; /* of streams and events */
	int priority;   /* of streams */
	bool has_variables;
	void *image; /* of a module; owned */
	size_t image_bytes;
	const void *of;  /* of a function: the program's module or kernel; of a module: library */
	char *name;      /* of a function of a module; owned */
	bool of_library; /* a module of cuLibraryGetModule, a function of cuKernelGetFunction */
	_Atomic int recorded; /* an event: where it was recorded last */
	struct td_twin_set sets[TD_TWIN_SETS_MAX];
	unsigned set_count;
};

/* A copy of the row with this handle, at any home, or false. */
bool td_twin_get(enum td_twin_kind kind, const void *handle, struct td_twin *ret);
/* Adds a row with its first handle. False: memory is short. image and name are the table's then. */
bool td_twin_add(const struct td_twin *row);
/*
 * Takes a row out; *ret owns image and name. False: there is none. Functions go with their module.
 */
bool td_twin_remove(enum td_twin_kind kind, const void *handle, struct td_twin *ret);
void td_twin_release(struct td_twin *row);
/* The handle at that home becomes this one, unless there is one by now: false. */
bool td_twin_set_handle(enum td_twin_kind kind, const void *handle, CUdevice home, void *at_home);
void td_twin_set(enum td_twin_kind kind, const void *handle, int what, int value);
void td_twin_set_recorded(const void *event, CUdevice home);
/* The row's handle at that home; NULL: none yet. *ret_known: there is such a row. */
void *td_twin_at(enum td_twin_kind kind, const void *handle, CUdevice home, bool *ret_known);
/* The handle that the program has; the given one where no row has it. */
void *td_twin_program(enum td_twin_kind kind, void *handle);
/*
 * Calls visit for a copy of each row, newest last, without the lock, until it returns an error.
 * Rows that come meanwhile may be left out.
 */
int td_twin_each(int (*visit)(const struct td_twin *row, void *arg), void *arg);
/* So many rows of modules and libraries have variables. */
uint32_t td_twin_with_variables(void);
/* And so many modules have no image that they could be made of again. */
uint32_t td_twin_without_image(void);
/* All rows of a context, which has ended. */
void td_twins_drop(const void *context);
void td_twins_forked(void);

/*
 * In between, no row goes, so that the images and names of copies stay. Held while a twin is made,
 * which may take as long as compiling code does. May be nested.
 */
void td_twins_keep(void);
void td_twins_let_go(void);

/* -- twins.c -- */

/*
 * The twin at the present home, made now if there is none yet; the handle itself where there is no
 * such object. The context there is current.
 */
void *td_twin_here(enum td_twin_kind kind, void *handle);

/* The program's own context for a twin of it, else the given one. */
void *td_rehome_program_context(void *context);

/* The calling thread works in the present home's context where it worked in another home's. */
void td_rehome_sync(void);

/* Milliseconds between two events of the program's. CUresult. */
CUresult td_twin_elapsed(float *ret_ms, CUevent start, CUevent end, bool v2);
