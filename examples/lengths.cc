// SPDX-License-Identifier: BSD-3-Clause
// C++: the lengths of the packets that an application (default: the first) receives and sends in
// some seconds.
//   c++ lengths.cc $(pkg-config --cflags --libs libringtap) -o lengths && ./lengths [seconds [file-prefix]]
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include <ringtap/reader.h>

template <auto free_> struct Free {
	template <typename T> void operator()(T *p) const { free_(p); }
};
using Apps = std::unique_ptr<ringtap_apps, Free<ringtap_apps_free>>;
using Capture = std::unique_ptr<ringtap_capture, Free<ringtap_capture_close>>;
using Packets = std::unique_ptr<ringtap_packets, Free<ringtap_packets_free>>;

static std::string find(const std::string &name)
{
	ringtap_apps *raw;
	if (ringtap_apps_find(&raw))
		throw std::bad_alloc();
	Apps apps(raw);
	for (size_t i = 0; i < ringtap_apps_count(apps.get()); i++)
		if (name.empty() || name == ringtap_apps_name(apps.get(), i))
			return ringtap_apps_dir(apps.get(), i);
	throw std::runtime_error("no such DPDK application");
}

static Capture attach(const std::string &dir)
{
	ringtap_target all{};
	all.queue = -1;
	all.directions = RINGTAP_RX | RINGTAP_TX;
	all.snaplen = 64;
	ringtap_capture *raw;
	if (ringtap_capture_create(&raw, nullptr))
		throw std::bad_alloc();
	Capture capture(raw);
	if (ringtap_capture_attach(raw, dir.c_str(), &all, 1, nullptr))
		throw std::runtime_error(ringtap_capture_error(raw));
	return capture;
}

static std::map<std::string, uint64_t> read(ringtap_capture *capture, int seconds)
{
	auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
	std::map<std::string, uint64_t> lengths;
	ringtap_packets *raw;
	if (ringtap_packets_create(&raw))
		throw std::bad_alloc();
	Packets it(raw);
	ringtap_packets_fields(raw, RINGTAP_FIELDS_ALL);
	ringtap_run runs[64];
	int n;
	while ((n = ringtap_capture_next(capture, runs, 64, 100)) >= 0) {
		for (int i = 0; i < n; i++) {
			ringtap_packets_start(raw, &runs[i]);
			while (auto p = ringtap_packet_next(raw))
				lengths[std::string(p->direction == RINGTAP_TX ? "TX " : "RX ") +
					std::to_string(p->length)]++;
		}
		ringtap_capture_release(capture);
		if (std::chrono::steady_clock::now() >= end)
			ringtap_capture_stop(capture); // and on until everything is handed out
	}
	if (n != -EPIPE)
		throw std::runtime_error(ringtap_capture_error(capture));
	return lengths;
}

int main(int argc, char **argv)
try {
	Capture capture = attach(find(argc > 2 ? argv[2] : ""));
	for (auto &[length, packets] : read(capture.get(), argc > 1 ? std::atoi(argv[1]) : 3))
		std::cout << length << " bytes: " << packets << " packets\n";
} catch (const std::exception &e) {
	std::cerr << e.what() << "\n";
	return 1;
}
