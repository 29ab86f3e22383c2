// The state of a stage in <carousel/testing.hpp>.

#include <carousel/cpu.hpp>
#include <carousel/testing.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace carousel;
using test::contains;

namespace {

/// The sum of all frames' numbers, in its state, and in a member.
class remembering : public stage {
public:
    explicit remembering(u64 words = 2) : words_(words) {}
    description configure(const configuration&) override {
        return {.outputs = {{"test.sum", {{"sum", element::u64_, {1}}, {"member", element::u64_, {1}}}, {}}},
                .state = {{"sum", element::u64_, {words_}}}};
    }
    void process(frame& f) override {
        const u64* before = f.state().previous().plane<const u64>("sum").data();
        u64* after = f.state().next().plane<u64>("sum").data();
        u64* out = f.output().plane<u64>("sum").data();
        u64* member = f.output().plane<u64>("member").data();
        first = f.state().first();
        if (uses_nothing) f.output().set_used("sum", {0});
        sum_ += f.frame_number();
        f.queue().submit([=, n = f.frame_number(), words = words_, sum = sum_](device::cpu::pool&) {
            for (u64 k = 0; k < words; ++k) after[k] = before[k] + n;
            *out = after[words - 1];
            *member = sum;
        });
    }
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override {
        try {
            (void)f.state();
        } catch (const std::logic_error& e) {
            refused = e.what();
        }
    }
    bool first = false, uses_nothing = false;
    std::string refused;

private:
    u64 words_, sum_ = 0;
};

}  // namespace

TEST_CASE("a killed stage continues from its state, and a repeated frame from the one before") {
    testing::chain c({.in_flight = 3});
    auto object = std::make_unique<remembering>();
    remembering* now = object.get();
    c.add("sum", std::move(object));
    c.prepare();
    const auto read = [&](const char* plane) { return c.read<u64>("sum", plane).front(); };
    for (u64 n = 0; n <= 3; ++n) {
        c.run(n);
        CHECK(now->first == (n == 0));
    }
    CHECK(read("sum") == 6);
    CHECK(c.read<u64>("sum.state", "sum") == std::vector<u64>{6, 6});
    c.kill_and_restart("sum", std::make_unique<remembering>());
    c.run(3);  // the frame that was not committed is processed again
    CHECK(read("sum") == 6);
    CHECK(read("member") == 3);  // what a member remembers is lost
    c.run(4);
    CHECK(read("sum") == 10);
    c.run_tombstone(5, "given up");
    c.run(6);
    CHECK(read("sum") == 16);
    c.run_in_flight(7, 3);
    CHECK(c.read<u64>("sum.state", "sum") == std::vector<u64>{40, 40});
}

TEST_CASE("a state is read as a whole, whatever its stage uses of its output") {
    testing::chain c({});
    auto object = std::make_unique<remembering>();
    object->uses_nothing = true;
    c.add("sum", std::move(object));
    c.prepare();
    for (u64 n = 0; n <= 2; ++n) c.run(n);
    CHECK(c.read<u64>("sum.state", "sum") == std::vector<u64>{3, 3});
}

TEST_CASE("a state is accessible in process() alone, and a fresh object must have the same") {
    testing::chain c({});
    auto object = std::make_unique<remembering>();
    const remembering* now = object.get();
    c.add("sum", std::move(object));
    c.prepare();
    c.run(0);
    CHECK_THAT(now->refused, contains("only for process() of a stage"));
    CHECK_THROWS_WITH(c.kill_and_restart("sum", std::make_unique<remembering>(3)),
                      contains("another state, than the one that it replaces"));
    CHECK_THROWS_WITH(c.kill_and_restart("another", std::make_unique<remembering>()), contains("no stage"));
}
