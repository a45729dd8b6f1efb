/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames as Linux reads them. Registers of SVE beyond those of SIMD
 * need not be restored: every system call discards them. */
#include <asm/sigcontext.h>
#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "arch.h"
#include "image.h"

#define KEEP_ALTSTACK 7     /* as in arch_x86_64.c */
#define NT_ARM_GCS    0x410 /* Linux 6.13 */

struct frame {
	char info[128];
	uint64_t uc_flags, uc_link;
	struct {
		uint64_t sp;
		int32_t flags, padding;
		uint64_t size;
	} stack;
	uint64_t mask;
	char unused[120]; /* room for a mask of 1024 signals */
	struct sigcontext mc;
};
static_assert(offsetof(struct frame, mc) == 128 + 168 + 8, "struct rt_sigframe");

struct block {
	struct frame first, second;
};

static const uint32_t sigreturn[] = {0xd2801168, 0xd4000001}; /* mov x8, #139; svc #0 */

uint64_t rt_arch_sigreturn(const struct rt_process *p)
{
	const struct rt_map *map = NULL;
	char vdso[65536];
	const char *at;
	size_t size;

	for (size_t i = 0; i < p->map_count; i++)
		if (!strcmp(p->maps[i].path, "[vdso]"))
			map = &p->maps[i];
	if (!map)
		return 0;
	size = map->end - map->start < sizeof(vdso) ? map->end - map->start : sizeof(vdso);
	if (rt_process_read(p->pid, map->start, vdso, size))
		return 0;
	at = memmem(vdso, size, sigreturn, sizeof(sigreturn));
	return at ? map->start + (uint64_t)(at - vdso) : 0;
}

bool rt_arch_is_sigreturn(pid_t pid, uint64_t at)
{
	uint32_t code[2];

	return !rt_process_read(pid, at, code, sizeof(code)) &&
	       !memcmp(code, sigreturn, sizeof(code));
}

bool rt_arch_is_syscall(pid_t pid, uint64_t pc)
{
	uint32_t code;

	return !rt_process_read(pid, pc - 4, &code, 4) && code == 0xd4000001;
}

static int check(const struct user_regs_struct *r, const struct rt_idle *idle)
{
	if ((long)r->regs[8] != idle->nr || r->sp != idle->sp)
		return -EAGAIN;
	/* The kernel has stepped back to the instruction already, unless the call returns EINTR. */
	if (r->pc == idle->pc - 4 && r->regs[0] == idle->args[0])
		return 0;
	return r->pc == idle->pc && (long)r->regs[0] == -EINTR ? 0 : -EAGAIN;
}

static int read_vectors(pid_t tid, struct fpsimd_context *c)
{
	struct user_fpsimd_struct fp;
	struct iovec io = {&fp, sizeof(fp)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_FPREGSET, &io))
		return -errno;
	*c = (struct fpsimd_context){
		.head = {FPSIMD_MAGIC, sizeof(*c)}, .fpsr = fp.fpsr, .fpcr = fp.fpcr};
	memcpy(c->vregs, fp.vregs, sizeof(c->vregs));
	return 0;
}

/* The frames have no token for it. */
static bool has_shadow_stack(pid_t tid)
{
	uint64_t gcs[3]; /* features that are enabled, that are locked; pointer */
	struct iovec io = {gcs, sizeof(gcs)};

	return !ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_GCS, &io) && (gcs[0] & 1);
}

static void fill(struct frame *f, const struct user_regs_struct *r, uint64_t mask,
	const struct fpsimd_context *vectors)
{
	memset(f, 0, sizeof(*f));
	f->stack.flags = KEEP_ALTSTACK;
	f->mask = mask;
	memcpy(f->mc.regs, r->regs, sizeof(r->regs));
	f->mc.sp = r->sp;
	f->mc.pc = r->pc;
	f->mc.pstate = r->pstate;
	memcpy(f->mc.__reserved, vectors, sizeof(*vectors)); /* zeros end the list */
}

int rt_arch_prepare(
	pid_t tid, const struct rt_idle *idle, const struct rt_call *call, struct rt_frames *f)
{
	struct block *b = (struct block *)f->bytes;
	const size_t text = call->text ? strlen(call->text) + 1 : 0;
	struct user_regs_struct r, *next = (struct user_regs_struct *)f->regs;
	struct iovec io = {&r, sizeof(r)};
	struct fpsimd_context vectors;
	uint64_t mask;
	int ret;

	static_assert(sizeof(r) <= sizeof(f->regs), "registers");
	static_assert(sizeof(*b) + 4096 <= sizeof(f->bytes), "frames and a path");
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) ||
		ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(mask), &mask))
		return -errno;
	ret = check(&r, idle);
	ret = ret ? ret : read_vectors(tid, &vectors);
	if (!ret && has_shadow_stack(tid))
		ret = -ENOTSUP;
	if (ret)
		return ret;
	if (sizeof(*b) + text > sizeof(f->bytes))
		return -ENAMETOOLONG;
	f->size = sizeof(*b) + text;
	f->at = (r.sp - f->size) & ~(uint64_t)63;
	memcpy(f->bytes + sizeof(*b), call->text ? call->text : "", text);
	*next = r;
	r.pc = idle->pc - 4;
	r.regs[0] = idle->args[0];
	fill(&b->second, &r, mask, &vectors);
	r.regs[0] = text ? f->at + sizeof(*b) : call->args[0];
	r.regs[1] = call->args[1];
	r.regs[30] = call->sigreturn; /* where the function returns to */
	r.pc = call->function;
	r.sp = f->at + offsetof(struct block, second);
	fill(&b->first, &r, UINT64_MAX, &vectors);
	next->pc = call->sigreturn;
	next->sp = f->at + offsetof(struct block, first);
	return 0;
}

int rt_arch_begin(pid_t tid, const struct rt_frames *f)
{
	struct iovec io = {(void *)(uintptr_t)f->regs, sizeof(struct user_regs_struct)};

	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &io) ? -errno : 0;
}
