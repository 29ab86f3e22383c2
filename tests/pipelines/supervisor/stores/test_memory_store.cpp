// Memory of a run that is returned to a second supervisor, descriptor by descriptor.
#include <fcntl.h>

#include "core/json.hpp"
#include "supervisor/stores/memory_store.hpp"
#include "tests/support/catch.hpp"

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
