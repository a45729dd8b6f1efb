/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of ours that an application calls by a slot or a pointer, compiled for processors that
 * check where such calls arrive (Intel's IBT): each begins with endbr64, and their object's
 * properties have IBT, without which the loader switches the check off. Nothing of it is run. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define FEATURES 0xc0000002 /* GNU_PROPERTY_X86_FEATURE_1_AND */
#define IBT      1u

static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
static const char *path;
static const uint8_t *file;

static int map(void **state)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -1;
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return file == MAP_FAILED;
}

static const Elf64_Shdr *section(unsigned i)
{
	const Elf64_Ehdr *e = (const void *)file;

	return i < e->e_shnum ? (const Elf64_Shdr *)(const void *)(file + e->e_shoff) + i : NULL;
}

static const Elf64_Shdr *section_of(uint32_t type)
{
	const Elf64_Shdr *s;

	for (unsigned i = 0; (s = section(i)) && s->sh_type != type; i++)
		;
	assert_non_null(s);
	return s;
}

static const uint8_t *code_of(const char *name)
{
	const Elf64_Shdr *table = section_of(SHT_SYMTAB), *strings = section(table->sh_link);
	const Elf64_Sym *s = (const void *)(file + table->sh_offset);

	for (size_t i = 0; i < table->sh_size / sizeof(*s); i++) {
		const Elf64_Shdr *text = section(s[i].st_shndx);

		if (ELF64_ST_TYPE(s[i].st_info) == STT_FUNC && text &&
			!strcmp((const char *)file + strings->sh_offset + s[i].st_name, name))
			return file + text->sh_offset + (s[i].st_value - text->sh_addr);
	}
	fail_msg("%s is not in %s", name, path);
	return NULL;
}

static void test_each_begins_with_a_landing(void **state)
{
	static const char *const names[] = {"rt_vhost_dequeue", "rt_vhost_enqueue",
		"rt_vhost_try_dequeue", "rt_vhost_submit", "ifname_called", "unregister_called",
		"rt_hook_rx", "rt_hook_tx"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (memcmp(code_of(names[i]), endbr64, sizeof(endbr64)))
			fail_msg("%s does not begin with endbr64", names[i]);
}

static void test_the_object_says_so(void **state)
{
	const Elf64_Shdr *s;
	uint32_t found = 0;

	for (unsigned i = 0; (s = section(i)); i++) {
		const Elf64_Nhdr *n = (const void *)(file + s->sh_offset);
		const uint32_t *word = (const uint32_t *)(n + 1) + 1; /* behind "GNU" */

		if (s->sh_type != SHT_NOTE || n->n_type != NT_GNU_PROPERTY_TYPE_0)
			continue;
		/* Type, size, value, each property padded to 8 bytes. */
		for (uint32_t at = 0; at + 12 <= n->n_descsz;
			at += 8 + ((word[at / 4 + 1] + 7) & ~7u))
			found |= word[at / 4] == FEATURES ? word[at / 4 + 2] : 0;
	}
	assert_true(found & IBT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_begins_with_a_landing),
		cmocka_unit_test(test_the_object_says_so),
	};

	path = argc > 1 ? argv[1] : "";
	return cmocka_run_group_tests(tests, map, NULL);
}
