/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch.h"
#include "image.h"
#include "judge.h"

#define LOW ((void *)0x10000000) /* below all libraries */

/* Checks this process, after the C library was mapped as data, with this protection. */
static void check_addresses(int prot)
{
	const struct rt_map *libc, *code;
	struct rt_process p;
	struct stat st;
	void *data, *library;
	int fd;

	library = dlopen(
		"libc.so.6", RTLD_LAZY | RTLD_NOLOAD); /* a sanitizer has a dlopen() of its own */
	assert_non_null(library);
	assert_int_equal(rt_process_open(&p, getpid()), 0);
	libc = rt_process_find(&p, "libc.so.6");
	assert_non_null(libc);
	fd = open(libc->path, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	data = mmap(LOW, (size_t)st.st_size, prot, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	assert_ptr_equal(data, LOW);
	rt_process_close(&p);
	assert_int_equal(rt_process_open(&p, getpid()), 0);
	assert_int_equal(
		rt_judge_function(&p, "dlopen"), (uint64_t)(uintptr_t)dlsym(library, "dlopen"));
	code = rt_process_at(&p, rt_arch_sigreturn(&p));
	assert_non_null(code);
	assert_int_equal(code->perms[2], 'x');
	rt_process_close(&p);
	munmap(data, (size_t)st.st_size);
	close(fd);
	dlclose(library);
}

static void test_library_that_is_mapped_as_data(void **state)
{
	check_addresses(PROT_READ);
}

/* Sections that are all the same 256 MiB of a sparse file, or as many symbols. */
static int make_bomb(unsigned sections, unsigned count, unsigned symbols)
{
	const off_t size = 24 * (off_t)symbols, from = 1 << 20;
	Elf64_Ehdr e = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_shoff = sizeof(e),
		.e_ehsize = sizeof(e),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)count};
	Elf64_Shdr s[64] = {
		{.sh_size = sections}, {.sh_type = SHT_STRTAB, .sh_size = 4096, .sh_offset = 16}};
	int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);

	for (unsigned i = 2; i < 64; i++)
		s[i] = (Elf64_Shdr){.sh_type = SHT_DYNSYM,
			.sh_offset = (Elf64_Off)from,
			.sh_size = (Elf64_Xword)size,
			.sh_link = 1,
			.sh_addralign = 8,
			.sh_entsize = 24};
	assert_int_equal(pwrite(fd, &e, sizeof(e), 0), sizeof(e));
	assert_int_equal(pwrite(fd, s, sizeof(s), sizeof(e)), sizeof(s));
	assert_int_equal(ftruncate(fd, 1l << 34), 0);
	return fd;
}

/* Opens it in another process. The memory that takes, in MiB. */
static long memory_of(int fd)
{
	struct rusage u;
	int status;
	pid_t child = fork();

	if (!child) {
		struct rlimit most = {.rlim_cur = 4ul << 30, .rlim_max = 4ul << 30};
		struct rt_image i;
		char path[64];

		setrlimit(RLIMIT_AS, &most);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (!rt_image_open_file(&i, path)) {
			rt_image_symbol(&i, "none");
			rt_image_close(&i);
		}
		_exit(0);
	}
	assert_int_equal(wait4(child, &status, 0, &u), child);
	assert_int_equal(status, 0);
	close(fd);
	return u.ru_maxrss >> 10;
}

static void test_many_tables_of_symbols(void **state)
{
	assert_true(memory_of(make_bomb(0, 64, 11184800)) < 600);
}

static void test_many_sections(void **state)
{
	assert_true(memory_of(make_bomb(10000000, 0, 11184800)) < 100);
}

/* A process makes others read what it maps: here 16 files with 2.4 MB of symbols each, in holes. */
static void test_many_mapped_files(void **state)
{
	const struct rt_inject_options opts = {.probe = "/nonexistent"};
	const Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 4096};
	const Elf64_Off at = 1 << 19;
	const Elf64_Half count = 1, size = sizeof(load);
	struct rt_process p;
	char err[256];
	void *maps[16];

	if (geteuid())
		skip(); /* files without a name are found with a capability only */
	for (unsigned i = 0; i < 16; i++) {
		int fd = make_bomb(0, 3, 100000);

		pwrite(fd, &load, sizeof(load), (off_t)at);
		pwrite(fd, &at, sizeof(at), offsetof(Elf64_Ehdr, e_phoff));
		pwrite(fd, &size, sizeof(size), offsetof(Elf64_Ehdr, e_phentsize));
		pwrite(fd, &count, sizeof(count), offsetof(Elf64_Ehdr, e_phnum));
		maps[i] = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
		assert_ptr_not_equal(maps[i], MAP_FAILED);
		close(fd);
	}
	assert_int_equal(rt_process_open(&p, getpid()), 0);
	rt_judge_bytes = 20 << 20;
	assert_int_equal(rt_judge(&p, &opts, err, sizeof(err)), -E2BIG);
	assert_non_null(strstr(err, "more and larger files"));
	rt_judge_bytes = 512 << 20;
	assert_int_equal(rt_judge(&p, &opts, err, sizeof(err)), -ENOEXEC); /* no DPDK */
	/* Work after a judgement has no such limit. */
	assert_false(rt_image_limit_reached());
	assert_true(rt_judge_function(&p, "dlopen") != 0);
	rt_process_close(&p);
	for (unsigned i = 0; i < 16; i++)
		munmap(maps[i], 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_library_that_is_mapped_as_data),
		cmocka_unit_test(test_many_tables_of_symbols),
		cmocka_unit_test(test_many_sections),
		cmocka_unit_test(test_many_mapped_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
