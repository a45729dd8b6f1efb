/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames as Linux writes and reads them. */
#include <asm/sigcontext.h>
#include <assert.h>
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "arch.h"
#include "image.h"

#define RED_ZONE      128
#define FLAGS_NONE    0x202 /* interrupts on */
#define UC_FLAGS      7     /* UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
#define FX_BYTES      512
#define XSTATE_HEADER 64
#define XCR0_AT       464 /* in the xstate regset: the features that it has */
#define XSTATE_AMX    (3ull << 17)
/* No valid flags of sigaltstack(), whose failure rt_sigreturn() ignores: the thread's alternative
 * stack, unknown here, stays. */
#define KEEP_ALTSTACK 7

struct frame {
	uint64_t restorer; /* where the function returns to */
	uint64_t uc_flags, uc_link;
	struct {
		uint64_t sp;
		int32_t flags, padding;
		uint64_t size;
	} stack;
	struct sigcontext mc;
	uint64_t mask;
	char info[128];
};

/* In the order of addresses; functions use the stack below `second`. */
struct block {
	uint64_t padding; /* frames begin 8 bytes behind a multiple of 16 */
	struct frame first;
	uint64_t padding2;
	struct frame second;
};

static const char sigreturn[9] = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"; /* mov $15,%rax; syscall */

uint64_t rt_arch_sigreturn(const struct rt_process *p)
{
	const struct rt_map *libc = rt_process_find(p, "libc.so.6");
	struct rt_image i;
	uint64_t at = 0;

	if (!libc)
		libc = rt_process_find(p, "libc-2.");
	if (libc && !rt_image_open(&i, p, libc)) {
		at = rt_image_code(&i, sigreturn, sizeof(sigreturn));
		rt_image_close(&i);
	}
	return at;
}

bool rt_arch_is_sigreturn(pid_t pid, uint64_t at)
{
	char code[sizeof(sigreturn)];

	return !rt_process_read(pid, at, code, sizeof(code)) &&
	       !memcmp(code, sigreturn, sizeof(code));
}

bool rt_arch_is_syscall(pid_t pid, uint64_t pc)
{
	unsigned char code[2];

	return !rt_process_read(pid, pc - 2, code, 2) && code[0] == 0x0f && code[1] == 0x05;
}

static int check(const struct user_regs_struct *r, const struct rt_idle *idle)
{
	/* -EINTR and the kernel's ERESTARTSYS to ERESTART_RESTARTBLOCK; the last one needs
	 * another system call. */
	static const long interrupted[] = {-EINTR, -512, -513, -514};

	if ((long)r->orig_rax != idle->nr || r->rip != idle->pc || r->rsp != idle->sp)
		return -EAGAIN;
	for (size_t i = 0; i < sizeof(interrupted) / sizeof(interrupted[0]); i++)
		if ((long)r->rax == interrupted[i])
			return 0;
	return -EAGAIN;
}

/* Bytes of an XSAVE area in the standard form. */
static size_t area_bytes(uint64_t features)
{
	size_t most = FX_BYTES + XSTATE_HEADER;

	for (unsigned i = 2; i < 63; i++) {
		unsigned size, offset, c, d;

		if (!(features >> i & 1))
			continue;
		__cpuid_count(0xd, i, size, offset, c, d);
		if (offset + size > most)
			most = offset + size;
	}
	return most;
}

/* Reads the vector registers and completes them to what rt_sigreturn() restores. The size, or
 * -errno. */
static int read_vectors(pid_t tid, char *area, size_t room)
{
	struct iovec io = {area, room & ~(size_t)7}; /* whole registers only, else EINVAL */
	struct _fpx_sw_bytes sw = {.magic1 = FP_XSTATE_MAGIC1};
	uint32_t end = FP_XSTATE_MAGIC2;
	uint64_t used;
	size_t size;

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &io))
		return errno == ENODEV || errno == EINVAL ? -ENOTSUP : -errno;
	memcpy(&sw.xfeatures, area + XCR0_AT, sizeof(sw.xfeatures));
	memcpy(&used, area + FX_BYTES, sizeof(used));
	/* Tiles are larger than the frame that a thread without the permission has. */
	if (used & XSTATE_AMX)
		return -ENOTSUP;
	sw.xfeatures &= ~XSTATE_AMX;
	size = area_bytes(sw.xfeatures);
	if (size > io.iov_len || size + sizeof(end) > room)
		return -ENOTSUP;
	sw.xstate_size = (uint32_t)size;
	sw.extended_size = (uint32_t)(size + sizeof(end));
	memcpy(area + FX_BYTES - sizeof(sw), &sw, sizeof(sw));
	memcpy(area + size, &end, sizeof(end));
	return (int)(size + sizeof(end));
}

static struct frame frame_of(const struct rt_call *call, uint64_t mask)
{
	struct frame f = {.restorer = call->sigreturn, .uc_flags = UC_FLAGS, .mask = mask};

	f.stack.flags = KEEP_ALTSTACK;
	return f;
}

static void restore(struct frame *f, const struct user_regs_struct *r, uint64_t vectors)
{
	f->mc = (struct sigcontext){.r8 = r->r8,
		.r9 = r->r9,
		.r10 = r->r10,
		.r11 = r->r11,
		.r12 = r->r12,
		.r13 = r->r13,
		.r14 = r->r14,
		.r15 = r->r15,
		.rdi = r->rdi,
		.rsi = r->rsi,
		.rbp = r->rbp,
		.rbx = r->rbx,
		.rdx = r->rdx,
		.rax = r->orig_rax, /* and the instruction again */
		.rcx = r->rcx,
		.rsp = r->rsp,
		.rip = r->rip - 2,
		.eflags = r->eflags,
		.cs = (uint16_t)r->cs,
		.ss = (uint16_t)r->ss,
		.fpstate = (void *)(uintptr_t)vectors};
}

int rt_arch_prepare(
	pid_t tid, const struct rt_idle *idle, const struct rt_call *call, struct rt_frames *f)
{
	struct block *b = (struct block *)f->bytes;
	const size_t vectors = (sizeof(*b) + 63) & ~(size_t)63;
	struct user_regs_struct r, *next = (struct user_regs_struct *)f->regs;
	uint64_t mask, args[2] = {call->args[0], call->args[1]};
	size_t text = call->text ? strlen(call->text) + 1 : 0;
	int size, ret;

	static_assert(sizeof(r) <= sizeof(f->regs), "registers");
	if (ptrace(PTRACE_GETREGS, tid, NULL, &r) ||
		ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(mask), &mask))
		return -errno;
	ret = check(&r, idle);
	if (ret)
		return ret;
	size = read_vectors(tid, f->bytes + vectors, sizeof(f->bytes) - vectors - text);
	if (size < 0)
		return size;
	f->size = vectors + (size_t)size + text;
	f->at = (r.rsp - RED_ZONE - f->size) & ~(uint64_t)63;
	if (text) {
		memcpy(f->bytes + vectors + size, call->text, text);
		args[0] = f->at + vectors + (size_t)size;
	}
	memset(b, 0, sizeof(*b));
	b->second = frame_of(call, mask);
	restore(&b->second, &r, f->at + vectors);
	b->first = frame_of(call, UINT64_MAX);
	b->first.mc = (struct sigcontext){.rdi = args[0],
		.rsi = args[1],
		.rip = call->function,
		.rsp = f->at + offsetof(struct block, second),
		.eflags = FLAGS_NONE,
		.cs = (uint16_t)r.cs,
		.ss = (uint16_t)r.ss};
	*next = r;
	next->rip = call->sigreturn;
	next->rsp = f->at + offsetof(struct block, first) + sizeof(uint64_t);
	next->rax = 0;
	next->orig_rax = UINT64_MAX; /* no system call: nothing to restart */
	next->eflags = FLAGS_NONE;
	return 0;
}

int rt_arch_begin(pid_t tid, const struct rt_frames *f)
{
	return ptrace(PTRACE_SETREGS, tid, NULL, f->regs) ? -errno : 0;
}
