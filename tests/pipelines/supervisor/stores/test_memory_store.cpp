// Memory of a run that is returned to a second supervisor, descriptor by descriptor.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "core/json.hpp"
#include "supervisor/stores/memory_store.hpp"
#include "supervisor/stores/status_reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using nlohmann::json;

namespace {

memory_item ring_in_pieces(u32 index, u32 pieces) {
    memory_item m;
    m.name = "ring r" + std::to_string(index);
    m.index = index;
    m.choice.kind = device::memory_kind::vmm;
    m.guard = {pieces, device_piece_step, ""};
    m.bytes = pieces * device_piece_step;
    return m;
}

memory_item ring_of_bytes(u64 bytes) {
    memory_item m;
    m.name = "ring";
    m.choice.kind = device::memory_kind::memfd;
    m.bytes = bytes;
    return m;
}

json stored_block(u32 index, u64 bytes, int fd, u32 pieces) {
    return {{"asset", false}, {"index", index}, {"kind", "vmm"},    {"bytes", bytes},
            {"uuid", "aa"},   {"ipc", ""},      {"pieces", pieces}, {"fd", fd}};
}

std::vector<shm::unique_fd> some_fds(std::size_t count) {
    std::vector<shm::unique_fd> fds;
    while (fds.size() < count) fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return fds;
}

}  // namespace

TEST_CASE("a ring in pieces is restored with all its descriptors and passed on") {
    memory_store k;
    k.expect({ring_in_pieces(0, 3), ring_in_pieces(1, 2)});
    std::vector<shm::unique_fd> fds = some_fds(5);
    const std::vector<int> numbers{fds[0].get(), fds[1].get(), fds[2].get(), fds[3].get(), fds[4].get()};
    k.restore(json::array({stored_block(0, 3 * device_piece_step, 2, 3)}), fds);
    CHECK_FALSE(k.complete());  // the other one is missing
    k.restore(json::array({stored_block(1, 2 * device_piece_step, 0, 2)}), fds);
    REQUIRE(k.complete());
    std::vector<int> out;
    const json all = k.describe_all(out);
    CHECK(out == std::vector<int>{numbers[2], numbers[3], numbers[4], numbers[0], numbers[1]});
    CHECK(all[0]["fd"] == 0);
    CHECK(all[0]["pieces"] == 3);
    CHECK(all[1]["fd"] == 3);
    CHECK(all[1]["pieces"] == 2);
}

TEST_CASE("a ring's replacement is other memory with the same contents") {
    memory_store k;
    k.make({ring_of_bytes(3 << 20)}, "");
    std::vector<int> fds;
    (void)k.describe(false, 0, fds);
    const shm::unique_fd before(::fcntl(fds.at(0), F_DUPFD_CLOEXEC, 0));
    const u64 mark = 0x1234'5678'9abc'def0, later = 1;
    const off_t at = (2 << 20) + 8;
    REQUIRE(::pwrite(before.get(), &mark, sizeof mark, at) == sizeof mark);
    k.replace_ring(0);
    fds.clear();
    (void)k.describe(false, 0, fds);
    REQUIRE(::pwrite(before.get(), &later, sizeof later, at) == sizeof later);
    u64 found = 0;
    CHECK(::pread(fds.at(0), &found, sizeof found, at) == sizeof found);
    CHECK(found == mark);
    CHECK(k.complete());
}

TEST_CASE("carousel-alloc reads the status words of a ring for the supervisor") {
    memory_store k;
    k.make({ring_of_bytes(3 << 12)}, "");
    std::vector<int> fds;
    const json memory = k.describe(false, 0, fds);
    const device::status_word second{7, 3, static_cast<u32>(device::status_state::ready)};
    REQUIRE(::pwrite(fds.at(0), &second, sizeof second, 1 << 12) == sizeof second);
    status_reader reader(std::filesystem::read_symlink("/proc/self/exe").parent_path());
    const std::vector<device::status_word> words = reader.read(memory, fds, 3, 1 << 12);
    REQUIRE(words.size() == 3);
    CHECK(words[0].state == 0);
    CHECK(words[1].ring_sequence == 7);
    CHECK(words[1].epoch == 3);
    CHECK(words[1].state == second.state);
    CHECK_THROWS_WITH(reader.read(memory, fds, 4, 1 << 12), test::contains("smaller than the ring's slots"));
    json on_gpu = memory;
    on_gpu["kind"] = "vmm";
    on_gpu["uuid"] = "00000000000000000000000000000000";
    CHECK_THROWS_WITH(reader.read(on_gpu, fds, 3, 1 << 12), test::contains("CUDA"));
    CHECK(reader.read(memory, fds, 3, 1 << 12).size() == 3);  // it continues after a refusal
}

TEST_CASE("a process that gave no answer for one ring is not asked for the next one") {
    const scratch_folder folder;
    std::filesystem::permissions(folder.write("carousel-alloc", "#!/bin/sh\n"),
                                 std::filesystem::perms::owner_all);
    status_reader reader(folder.path.string());
    CHECK_THROWS_AS(reader.read(json::object(), {}, 3, 1 << 12), device_error);
    CHECK_THROWS_WITH(reader.read(json::object(), {}, 3, 1 << 12), test::contains("for another ring"));
}

TEST_CASE("a ring with different or missing pieces does not count as returned") {
    memory_store k;
    k.expect({ring_in_pieces(0, 3)});
    std::vector<shm::unique_fd> fds = some_fds(3);
    k.restore(json::array({stored_block(0, 3 * device_piece_step, 0, 2)}), fds);
    CHECK_FALSE(k.complete());
    k.restore(json::array({stored_block(0, 3 * device_piece_step, 1, 3)}), fds);  // of three there are two
    CHECK_FALSE(k.complete());
    std::vector<shm::unique_fd> whole = some_fds(3);
    k.restore(json::array({stored_block(0, 3 * device_piece_step, 0, 3)}), whole);
    CHECK(k.complete());
}
