/* Links a module: calls, and the layout of shared memory. Also has the look-ups of ptx.h. */
#include <stdlib.h>

#include "ptx/parse/parse.h"

/* Returns where an entry's own shared variables begin: behind the module's. */
static uint32_t entry_shared_base(const struct sg_ptx_module *m)
{
	return (m->shared_bytes + 255) & ~255u;
}

static void link_shared(struct parser *p, struct function *f)
{
	uint32_t base = entry_shared_base(p->m);

	for (uint32_t n = 0; n < f->reloc_count; n++) {
		struct reloc *r = &f->relocs[n];

		if (r->is_shared)
			f->frame[r->slot] = base + r->variable + (uint64_t)r->addend;
	}
	if (!f->is_entry)
		return;
	if (f->pub.shared_bytes > SG_PTX_MAX_SHARED_BYTES - base)
		sg_ptx_fail(p, 1, "function \"%s\" needs more than %u bytes of shared memory",
			f->name, SG_PTX_MAX_SHARED_BYTES);
	f->pub.shared_bytes = f->pub.shared_bytes ? base + f->pub.shared_bytes : p->m->shared_bytes;
}

static void link_call(struct parser *p, struct call *call)
{
	const struct function *f = call->callee;

	if (!f)
		return;
	if (!f->is_defined) {
		sg_ptx_fail(p, call->line, "function \"%s\" is not defined", f->name);
		return;
	}
	if (call->copy_count != f->formal_count || call->result_count != f->result_count) {
		sg_ptx_fail(p, call->line, "wrong number of arguments for \"%s\"", f->name);
		return;
	}
	for (uint32_t n = 0; n < call->copy_count; n++) {
		if (call->copies[n].size != f->formals[n].size) {
			sg_ptx_fail(p, call->line, "argument of another size for \"%s\"", f->name);
			return;
		}
	}
}

void sg_ptx_link(struct parser *p)
{
	for (uint32_t n = 0; n < p->m->variable_count && !p->failed; n++) {
		const struct variable *v = p->m->variables[n];

		if (!v->is_defined)
			sg_ptx_fail(p, v->line, "variable \"%s\" is not defined", v->name);
	}
	for (uint32_t n = 0; n < p->m->function_count && !p->failed; n++) {
		struct function *f = p->m->functions[n];

		if (f->is_entry && !f->is_defined)
			sg_ptx_fail(p, 1, "function \"%s\" is not defined", f->name);
		link_shared(p, f);
		for (struct call *call = f->calls; call && !p->failed; call = call->next)
			link_call(p, call);
	}
}

uint32_t sg_ptx_module_target(const struct sg_ptx_module *m)
{
	return m->target;
}

bool sg_ptx_module_fits(const struct sg_ptx_module *m, uint32_t sm)
{
	if (m->suffix == 'a')
		return m->target == sm;
	return m->target <= sm && (m->suffix != 'f' || m->target / 10 == sm / 10);
}

uint32_t sg_ptx_module_version(const struct sg_ptx_module *m)
{
	return m->version;
}

const struct sg_ptx_function *sg_ptx_module_function(const struct sg_ptx_module *m, size_t index)
{
	for (uint32_t n = 0; n < m->function_count; n++) {
		if (m->functions[n]->is_entry && !index--)
			return &m->functions[n]->pub;
	}
	return NULL;
}

const struct sg_ptx_function *sg_ptx_module_find_function(
	const struct sg_ptx_module *m, const char *name)
{
	for (uint32_t n = 0; n < m->function_count; n++) {
		if (m->functions[n]->is_entry && !strcmp(m->functions[n]->name, name))
			return &m->functions[n]->pub;
	}
	return NULL;
}

const struct sg_ptx_variable *sg_ptx_module_variable(const struct sg_ptx_module *m, size_t index)
{
	return index < m->variable_count ? &m->variables[index]->pub : NULL;
}

long sg_ptx_module_find_variable(const struct sg_ptx_module *m, const char *name)
{
	for (uint32_t n = 0; n < m->variable_count; n++) {
		if (!strcmp(m->variables[n]->name, name))
			return n;
	}
	return -1;
}

void sg_ptx_module_bind(struct sg_ptx_module *m, size_t index, uint64_t address)
{
	m->variables[index]->address = address;
	m->variables[index]->is_bound = true;
	for (uint32_t n = 0; n < m->function_count; n++) {
		struct function *f = m->functions[n];

		for (uint32_t k = 0; k < f->reloc_count; k++) {
			const struct reloc *r = &f->relocs[k];

			if (!r->is_shared && r->variable == index)
				f->frame[r->slot] = address + (uint64_t)r->addend;
		}
	}
}

void sg_ptx_module_initial(const struct sg_ptx_module *m, size_t index, void *ret_bytes)
{
	const struct variable *v = m->variables[index];

	memset(ret_bytes, 0, v->pub.size);
	if (v->byte_count)
		memcpy(ret_bytes, v->bytes, v->byte_count);
	for (uint32_t n = 0; n < v->initial_count; n++) {
		const struct initial *i = &v->initials[n];
		uint64_t address = m->variables[i->variable]->address + (uint64_t)i->addend;

		memcpy((uint8_t *)ret_bytes + i->offset, &address, sizeof(address));
	}
}
