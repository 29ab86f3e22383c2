#include <fcntl.h>

#include "control/memory_message.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;

TEST_CASE("a memory message is read as it was written") {
    std::vector<shm::unique_fd> fds;
    fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const json encoded = json::parse(
        run::memory_message(device::memory_kind::vmm, u64{1} << 40U, "GPU-1", "00fF1a", 0).dump());
    const device::memory_handle h = run::read_memory(encoded, fds);
    CHECK(h.kind == device::memory_kind::vmm);
    CHECK(h.bytes == u64{1} << 40U);
    CHECK(h.uuid == "GPU-1");
    CHECK(h.fd == fds[0].get());
    CHECK(h.ipc[0] == std::byte{0});
    CHECK(h.ipc[1] == std::byte{0xff});
    CHECK(h.ipc[2] == std::byte{0x1a});
    for (const auto kind : {device::memory_kind::ipc, device::memory_kind::memfd})
        CHECK(run::read_memory(run::memory_message(kind, 1, "", "", -1), {}).kind == kind);
}

TEST_CASE("a message of another version, or a damaged one, is refused with the reason") {
    const json good = run::memory_message(device::memory_kind::memfd, 4096, "", "", -1);
    json j = good;
    j["kind"] = "teleport";
    CHECK_THROWS_WITH(run::read_memory(j, {}), test::contains("teleport"));
    j = good;
    j["fd"] = 3;
    CHECK_THROWS_WITH(run::read_memory(j, {}), test::contains("names an fd that it did not send"));
    j = good;
    j["ipc"] = "0g";
    CHECK_THROWS_WITH(run::read_memory(j, {}), test::contains("not a hex digit"));
    j = good;
    j.erase("bytes");
    CHECK_THROWS_AS(run::read_memory(j, {}), json::exception);
}

TEST_CASE("memory in pieces is read with a descriptor of each, and refused where one has not come") {
    std::vector<shm::unique_fd> fds;
    for (int k = 0; k < 4; ++k) fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const json encoded = run::memory_message(device::memory_kind::vmm, 3 << 21, "GPU-1", "", 1, 3);
    const device::memory_handle h = run::read_memory(encoded, fds);
    CHECK(h.pieces == 3);
    CHECK(h.piece_bytes() == 2 << 20);
    CHECK(h.piece_fds == std::vector<int>{fds[1].get(), fds[2].get(), fds[3].get()});
    fds.pop_back();
    CHECK_THROWS_WITH(run::read_memory(encoded, fds), test::contains("names an fd that it did not send"));
    const json odd = run::memory_message(device::memory_kind::memfd, 4097, "", "", 0, 3);
    CHECK_THROWS_WITH(run::read_memory(odd, fds), test::contains("4097 bytes can't have 3 pieces"));
    const json host = run::memory_message(device::memory_kind::memfd, 3 << 12, "", "", 0, 3);
    CHECK(run::read_memory(host, fds).fd == fds[0].get());  // one descriptor for all of them
}
