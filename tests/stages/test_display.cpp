// The sinks: pictures, hashes, ledger, and a user-written stage.
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include <carousel/hash.hpp>
#include <carousel/testing.hpp>
#include "ledger/ledger.hpp"
#include "picture/png.hpp"
#include "stages/assets/texture.hpp"
#include "stages/display/display.hpp"
#include "stages/display/picture_file.hpp"
#include "stages/sharpen/sharpen.hpp"
#include "tests/kernels/block_hash_reference.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using stages::display;

namespace {

constexpr u32 width = 16;
constexpr u32 height = 8;

std::vector<u8> expected_picture(u64 frame_number) {
    std::vector<u8> rgba(width * height * 4);
    for (std::size_t i = 0; i < rgba.size(); ++i) {
        rgba[i] = i % 4 == 3 ? 255 : static_cast<u8>(i * 5 + frame_number * 31);
    }
    return rgba;
}

/// A source of pictures that can be computed in advance.
class painter : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        carousel::require_no_inputs(with);
        return {.outputs = {carousel::image_format(with.width, with.height)}};
    }
    void prepare(carousel::environment& env) override {
        pinned_ = env.context().allocate_host(width * height * 4);
    }
    void process(carousel::frame& f) override {
        const auto picture = expected_picture(f.frame_number());
        std::memcpy(pinned_->host_data(), picture.data(), picture.size());
        f.queue().copy(f.output().plane<u8>("color").data(), pinned_->data(), picture.size());
        f.queue().drain();
    }

private:
    std::unique_ptr<device::mapping> pinned_;
};

std::unique_ptr<testing::chain> painted(const scratch_folder& folder, const std::string& display_settings,
                                        u32 epoch = 1) {
    auto c = std::make_unique<testing::chain>(
        testing::chain_options{.width = width,
                               .height = height,
                               .runtime_directory = folder.path.string(),
                               .output_directory = (folder.path / "pictures").string(),
                               .epoch = epoch});
    c->add("painter", std::make_unique<painter>());
    c->add("display", std::make_unique<display>(), display_settings, {"painter"});
    c->prepare();
    return c;
}

telemetry::ledger_reader ledger_in(const scratch_folder& folder) {
    auto reader = telemetry::ledger_reader::open(telemetry::ledger_path(folder.path.string(), "display"));
    REQUIRE(reader);
    return std::move(*reader);
}

u64 hash_of(u64 frame_number) {
    const auto picture = expected_picture(frame_number);
    return test::reference_hash(std::as_bytes(std::span(picture)));
}

}  // namespace

TEST_CASE("every frame becomes a picture bit for bit and a record with the hash of its bytes") {
    scratch_folder folder;
    auto c = painted(folder, R"({"out": "p_%03d.png"})");
    for (u64 n = 0; n < 5; ++n) {
        c->run(n);
    }
    for (u64 n = 0; n < 5; ++n) {
        CHECK(stages::load_texture({folder.path / "pictures" / ("p_00" + std::to_string(n) + ".png"), {}, {}},
                                   "x")
                  .rgba == expected_picture(n));
    }
    const auto records = ledger_in(folder).read(0, 5);
    for (u64 n = 0; n < 5; ++n) {
        CHECK(records[n].hash == hash_of(n));
        CHECK(is_marked(records[n]));
        CHECK(records[n].writer == 1);
    }
    CHECK(ledger_in(folder).summarize(5).repeated == 0);
}

TEST_CASE("without pictures the ledger is the same") {
    for (const char* none : {R"({"out": ""})", R"({"out": "none"})"}) {
        scratch_folder folder;
        auto c = painted(folder, none);
        c->run(0);
        c->run(1);
        CHECK(folder.names() == std::vector<std::string>{"ledger-display.bin", "ledger-display.bin.names"});
        CHECK(ledger_in(folder).read(1, 1)[0].hash == hash_of(1));
    }
}

namespace {

/// A queue that counts the bytes that are copied through it; it passes all other calls to the inner queue.
class counting_queue : public device::queue {
public:
    explicit counting_queue(device::queue& inner) : inner_(inner) {}
    u64 copied = 0;
    [[nodiscard]] device::device_kind kind() const noexcept override { return inner_.kind(); }
    void copy(void* to, const void* from, u64 bytes) override {
        copied += bytes, inner_.copy(to, from, bytes);
    }
    void fill(void* to, u8 value, u64 bytes) override { inner_.fill(to, value, bytes); }
    void status(const device::status_step& step) override { inner_.status(step); }
    void drain() override { inner_.drain(); }
    void fault() override { inner_.fault(); }
    void submit(std::function<void(device::cpu::pool&)> task) override { inner_.submit(std::move(task)); }
    [[nodiscard]] void* native_stream() const noexcept override { return inner_.native_stream(); }

private:
    device::queue& inner_;
};

/// A frame of a chain, with a different queue.
class counted_frame : public carousel::frame {
public:
    counted_frame(carousel::frame& of, counting_queue& q) : of_(of), queue_(q) {}
    using carousel::frame::set_hash;
    [[nodiscard]] const carousel::shm::frame_meta& meta() const noexcept override { return of_.meta(); }
    [[nodiscard]] std::span<const std::byte> parameter_values(std::string_view type,
                                                              std::size_t bytes) const override {
        return of_.parameter_values(type, bytes);
    }
    [[nodiscard]] device::queue& queue() noexcept override { return queue_; }
    [[nodiscard]] carousel::input_payload input(std::size_t k) const noexcept override {
        return of_.input(k);
    }
    [[nodiscard]] carousel::output_payload output(std::size_t index) const noexcept override {
        return of_.output(index);
    }
    [[nodiscard]] u32 lane() const noexcept override { return of_.lane(); }
    [[nodiscard]] std::string_view tombstone_reason() const noexcept override {
        return of_.tombstone_reason();
    }
    void set_hash(u64 hash, std::string_view name) noexcept override { of_.set_hash(hash, name); }

private:
    carousel::frame& of_;
    counting_queue& queue_;
};

/// A display whose copies are counted.
class counted_display : public display {
public:
    explicit counted_display(u64& copied) : copied_(copied) {}
    void process(carousel::frame& f) override {
        counting_queue queue(f.queue());
        counted_frame counted(f, queue);
        display::process(counted);
        f.queue().drain();
        copied_ += queue.copied;
    }

private:
    u64& copied_;
};

}  // namespace

TEST_CASE("a display on the CPU hashes and packs pictures in place, without a copy") {
    for (const char* out : {R"({"out": ""})", R"({"out": "none"})", R"({"out": "p_%d.png"})"}) {
        scratch_folder folder;
        u64 copied = 0;
        testing::chain c({.width = width,
                          .height = height,
                          .runtime_directory = folder.path.string(),
                          .output_directory = (folder.path / "pictures").string()});
        c.add("painter", std::make_unique<painter>());
        c.add("display", std::make_unique<counted_display>(copied), out, {"painter"});
        c.prepare();
        for (u64 n = 0; n < 3; ++n) c.run(n);
        CHECK(copied == 0);
        CHECK(ledger_in(folder).read(2, 1)[0].hash == hash_of(2));
        CHECK(ledger_in(folder).summarize(3).hash_names ==
              std::vector<std::string>{std::string(plane_hash_name)});
    }
}

namespace {

/// A sink that hashes one plane of its input.
class hashing_sink : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration&) override { return {}; }
    void prepare(carousel::environment& env) override {
        hasher_ = std::make_unique<carousel::plane_hasher>(env);
    }
    void process(carousel::frame& f) override { hasher_->enqueue(f, "values"); }
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(carousel::frame& f) override { hasher_->set_hash(f); }

private:
    std::unique_ptr<carousel::plane_hasher> hasher_;
};

}  // namespace

TEST_CASE("a custom sink hashes a plane of any shape, without the padding between its rows") {
    scratch_folder folder;
    testing::chain c(
        {.runtime_directory = folder.path.string(), .output_directory = (folder.path / "pictures").string()});
    const auto shape = GENERATE(plane{"values", element::u16_, {3, 5, 7}},
                                plane{"values", element::u16_, {3, 5, 7}, {100, 20, 2}},
                                plane{"values", element::u16_, {3, 5, 7}, {70, 14, 2}},
                                plane{"values", element::u16_, {1, 5, 7}, {4, 20, 2}});
    c.provide("numbers", {"test.values", {shape}, {}});
    c.add("sink", std::make_unique<hashing_sink>(), "{}", {"numbers"});
    c.prepare();
    std::vector<u16> elements(shape.bytes() / 2);
    for (std::size_t k = 0; k < elements.size(); ++k) elements[k] = static_cast<u16>(k * 3701);
    const auto memory = std::as_bytes(std::span(elements));
    std::vector<std::byte> dense;
    const bool strided = !shape.strides.empty();
    for (u64 z = 0; z < shape.shape[0]; ++z)
        for (u64 y = 0; y < 5; ++y)
            for (u64 x = 0; x < 14; ++x)
                dense.push_back(memory[(strided ? shape.strides[0] : 70) * z +
                                       (strided ? shape.strides[1] : 14) * y + x]);
    c.fill("numbers", "values", elements);
    c.run(0);
    const auto reader = telemetry::ledger_reader::open(telemetry::ledger_path(folder.path.string(), "sink"));
    CHECK(reader->read(0, 1)[0].hash == test::reference_hash(dense));
}

TEST_CASE("rows at unequal distances can't be hashed, and the message names the plane") {
    scratch_folder folder;
    testing::chain c(
        {.runtime_directory = folder.path.string(), .output_directory = (folder.path / "pictures").string()});
    c.provide("numbers", {"test.values", {{"values", element::u16_, {3, 5, 7}, {120, 20, 2}}}, {}});
    c.add("sink", std::make_unique<hashing_sink>(), "{}", {"numbers"});
    c.prepare();
    CHECK_THROWS_WITH(c.run(0), test::contains("values"));
}

TEST_CASE("a successor that delivers a frame again replaces picture and record by the same") {
    scratch_folder folder;
    painted(folder, "{}")->run(0);
    const auto before = ledger_in(folder).summarize(1);
    auto second_incarnation = painted(folder, "{}", 2);
    second_incarnation->run(0);
    const auto after = ledger_in(folder).summarize(1);
    CHECK(after.image_hash == before.image_hash);
    // both incarnations committed it: a protocol violation, which the ledger must show
    CHECK(after.repeated == 1);
    CHECK(ledger_in(folder).read(0, 1)[0].committer == 2);
}

TEST_CASE("a process with a successor replaces none of the successor's pictures and leaves no files") {
    scratch_folder folder;
    const auto path = folder.path / "pictures" / "frame_00000.png";
    auto zombie = painted(folder, "{}"), successor = painted(folder, "{}", 2);
    successor->run(0);
    const auto before = std::filesystem::last_write_time(path);
    const std::size_t files =
        std::distance(std::filesystem::directory_iterator(folder.path / "pictures"), {});
    zombie->owned = false;
    zombie->run(0);
    CHECK(std::filesystem::last_write_time(path) == before);
    CHECK(static_cast<std::size_t>(
              std::distance(std::filesystem::directory_iterator(folder.path / "pictures"), {})) == files);
}

TEST_CASE("a tombstone frame has a record and no picture") {
    scratch_folder folder;
    auto c = painted(folder, "{}");
    c->run(0);
    c->run_tombstone(1, "given up");
    const auto sum = ledger_in(folder).summarize(2);
    CHECK(sum.tombstones == 1);
    CHECK(sum.lost == 0);
    CHECK(scratch_folder::names_in(folder.path / "pictures") == std::vector<std::string>{"frame_00000.png"});
}

TEST_CASE("a display that keeps three pictures keeps the newest, across tombstones and deaths") {
    scratch_folder folder;
    const auto there = [&] { return scratch_folder::names_in(folder.path / "pictures"); };
    {
        auto c = painted(folder, R"({"out": "p_%02d.png", "keep": 3})");
        for (u64 n = 0; n < 6; ++n) c->run(n);
        CHECK(there() == std::vector<std::string>{"p_03.png", "p_04.png", "p_05.png"});
    }
    {  // killed, and taken over by a process that waited as a standby while frame 6 was written, after which
       // the dead one did not clean up
        auto c = painted(folder, R"({"out": "p_%02d.png", "keep": 3})", 2);
        stages::write_picture_file(folder.path / "pictures" / "p_06.png", std::as_bytes(std::span("old")));
        c->run(6);
        CHECK(there() == std::vector<std::string>{"p_04.png", "p_05.png", "p_06.png"});
        c->run_tombstone(7, "given up");
        CHECK(there() == std::vector<std::string>{"p_05.png", "p_06.png"});
        c->run(8);
        CHECK(there() == std::vector<std::string>{"p_06.png", "p_08.png"});
    }
    auto c = painted(folder, R"({"out": "p_%02d.png", "keep": 1})", 3);  // more were left than it keeps
    c->run(9);
    CHECK(there() == std::vector<std::string>{"p_09.png"});
}

TEST_CASE("pictures that are written out of order leave the same newest ones") {
    scratch_folder folder;
    const stages::picture_name names("out", "p_%02d.png");
    stages::kept_pictures kept(names, folder.path, folder.path / "note", 3);
    const auto write = [&](u64 n) {
        stages::write_picture_file(names.of(n, folder.path), std::as_bytes(std::span("picture")));
        kept.wrote(n);
    };
    for (const u64 n : {1, 0, 3, 2, 6, 5, 8}) write(n);
    kept.passed(7);  // a tombstone
    write(4);        // already too old when it is written
    CHECK(folder.names() == std::vector<std::string>{"note", "p_06.png", "p_08.png"});
}

TEST_CASE("a file that the run has not written is kept, for any name") {
    scratch_folder folder, run;
    const auto put = [&](const char* name) {
        stages::write_picture_file(folder.path / name, std::as_bytes(std::span("theirs")));
    };
    put("p_00.png");  // from an older run into the same folder: this run's frame replaces it, and belongs to
                      // this run
    put("p_01.png");  // the same, but this run's frame 1 is a tombstone
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // file times have the resolution of the kernel's tick
    testing::chain c({.width = width, .height = height, .runtime_directory = run.path.string()});
    c.add("painter", std::make_unique<painter>());
    c.add("display", std::make_unique<display>(),
          fmt::format(R"({{"out": "{}/p_%02d.png", "keep": 2}})", folder.path.string()), {"painter"});
    c.prepare();
    for (const char* name : {"p_0.png", "p_000.png", "p_0x.png", "q_00.png", "p_00.png.txt"}) put(name);
    c.run(0);
    c.run_tombstone(1, "given up");
    for (u64 n = 2; n < 6; ++n) c.run(n);
    CHECK(scratch_folder::names_in(folder.path) ==
          std::vector<std::string>{"p_0.png", "p_00.png.txt", "p_000.png", "p_01.png", "p_04.png", "p_05.png",
                                   "p_0x.png", "q_00.png"});
}

TEST_CASE("an output directory that can't be created is an output error") {
    scratch_folder folder;
    testing::chain c({.width = width, .height = height, .output_directory = "/proc/none"});
    c.add("painter", std::make_unique<painter>());
    c.add("display", std::make_unique<display>(), "{}", {"painter"});
    CHECK_THROWS_AS(c.prepare(), output_error);
}

TEST_CASE("sharpening does not change a flat picture and steepens an edge") {
    scratch_folder folder;
    const auto sharpened = [&](const std::string& settings) {
        testing::chain c({.width = width,
                          .height = height,
                          .runtime_directory = folder.path.string(),
                          .output_directory = (folder.path / "pictures").string()});
        c.add("painter", std::make_unique<painter>());
        c.add("sharpen", std::make_unique<stages::sharpen>(), settings, {"painter"});
        c.prepare();
        c.run(0);
        const auto bytes = c.read_bytes("sharpen");
        std::vector<u8> rgba(bytes.size());
        std::memcpy(rgba.data(), bytes.data(), bytes.size());
        return rgba;
    };
    CHECK(sharpened(R"({"strength": 0})") == expected_picture(0));
    const auto sharp = sharpened(R"({"strength": 2})");
    CHECK(sharp != expected_picture(0));
    CHECK(sharp[3] == 255);
}
