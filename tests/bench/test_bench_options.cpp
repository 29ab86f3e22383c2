// The options that `carousel bench` accepts and those that it refuses.
#include <functional>

#include "bench/options.hpp"
#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::bench;

namespace {

bench_options read(const std::function<void(bench_texts&)>& change) {
    bench_texts t;
    change(t);
    return read_options(t);
}

/// The sentence that refuses it; "" when it is taken.
std::string refusal(const std::function<void(bench_texts&)>& change) {
    try {
        (void)read(change);
    } catch (const config_error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("Numbers of triangles may be lists, with k and M") {
    const bench_options o =
        read([](bench_texts& t) { t.triangles = "7,10k,2.5M", t.size = "1x2,1920x1080"; });
    REQUIRE(o.triangles == std::vector<u32>{7, 10'000, 2'500'000});
    REQUIRE(o.sizes == std::vector<picture_size>{{1, 2}, {1920, 1080}});
}

TEST_CASE("Devices are cpu and cuda:N") {
    REQUIRE_FALSE(read([](bench_texts&) {}).cuda);
    const bench_options third = read([](bench_texts& t) { t.device = "cuda:2"; });
    REQUIRE(third.cuda);
    REQUIRE(third.ordinal == 2);
    for (const char* bad : {"gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", ""})
        REQUIRE(refusal([&](bench_texts& t) { t.device = bad; }).find("is not a device") !=
                std::string::npos);
}

TEST_CASE("Each invalid value is refused with its option's name and the expected values") {
    const std::pair<std::function<void(bench_texts&)>, const char*> bad[] = {
        {[](bench_texts& t) { t.triangles = "0"; }, "--triangles: \"0\""},
        {[](bench_texts& t) { t.triangles = "10k,"; }, "--triangles: \"\""},
        {[](bench_texts& t) { t.triangles = "1000M"; }, "--triangles: \"1000M\""},
        {[](bench_texts& t) { t.triangles = "nan"; }, "--triangles: \"nan\""},
        {[](bench_texts& t) { t.size = "640"; }, "--size: \"640\""},
        {[](bench_texts& t) { t.size = "640x0"; }, "--size: \"640x0\""},
        {[](bench_texts& t) { t.size = "640x99999"; }, "--size: \"640x99999\""},
        {[](bench_texts& t) { t.frames = 0; }, "--frames"},
        {[](bench_texts& t) { t.instances = 0; }, "--instances"},
        {[](bench_texts& t) { t.shading = "litt"; }, "did you mean \"lit\""},
        {[](bench_texts& t) { t.path = "huge"; }, "--path: \"huge\""},
        {[](bench_texts& t) { t.peer = "vulkan"; }, "--peer: \"vulkan\""},
        {[](bench_texts& t) { t.peer = "opengl", t.shading = "ids"; }, "only lit pictures"},
        {[](bench_texts& t) { t.simd = "mmx"; }, "--simd: \"mmx\""},
        {[](bench_texts& t) { t.device = "cuda:0", t.threads = 2; }, "require --device cpu"},
        {[](bench_texts& t) { t.plot = "x.png"; }, "must end in .svg"},
    };
    for (const auto& [change, expected] : bad) {
        const std::string message = refusal(change);
        CAPTURE(expected, message);
        REQUIRE(message.find(expected) != std::string::npos);
    }
}

TEST_CASE("The option --json without a file means stdout") {
    REQUIRE(read([](bench_texts&) {}).json.empty());
    REQUIRE(read([](bench_texts& t) { t.wants_json = true; }).json == "-");
    REQUIRE(read([](bench_texts& t) { t.wants_json = true, t.json = "r.json"; }).json == "r.json");
}

namespace {

pipeline_bench_options read_pipeline(const std::function<void(pipeline_bench_texts&)>& change) {
    pipeline_bench_texts t;
    t.file = "demo.toml";
    change(t);
    return read_options(t);
}

}  // namespace

TEST_CASE("A bench of a pipeline writes no pictures, has five rounds of five seconds, and both modes") {
    const pipeline_bench_options o = read_pipeline([](pipeline_bench_texts&) {});
    REQUIRE((o.words.empty() && o.out.empty()));
    REQUIRE((o.rounds == 5 && o.seconds == 5 && o.warm_up_s == 1 && o.frames == 0));
    REQUIRE(o.modes == std::vector<std::string>{"process", "mps"});
    REQUIRE_FALSE(o.modes_requested);
    const pipeline_bench_options quick = read_pipeline(
        [](pipeline_bench_texts& t) { t.quick = true, t.seconds = "2", t.sizes = "64x36,1280x720"; });
    REQUIRE((quick.rounds == 3 && quick.seconds == 2 && quick.sizes.size() == 2));
}

TEST_CASE("A pipeline bench accepts depths with or without a window, and paced single frames") {
    const pipeline_bench_options none = read_pipeline([](pipeline_bench_texts&) {});
    REQUIRE(none.depths == std::vector<std::optional<forced_depth>>{std::nullopt});
    REQUIRE((!none.lone && none.plot.empty()));
    const pipeline_bench_options o = read_pipeline([](pipeline_bench_texts& t) {
        t.depths = "auto,3,14/16", t.wants_lone = true, t.lone = "1000", t.plot = "x.svg";
    });
    REQUIRE(o.depths ==
            std::vector<std::optional<forced_depth>>{std::nullopt, forced_depth{3, 3}, forced_depth{14, 16}});
    REQUIRE((o.lone && o.lone_fps == 1000 && o.plot == "x.svg"));
    REQUIRE(read_pipeline([](pipeline_bench_texts& t) { t.wants_lone = true; }).lone_fps == 0);
}

TEST_CASE("What a bench of a pipeline can't take is refused by the name of its option") {
    const std::pair<std::function<void(pipeline_bench_texts&)>, const char*> bad[] = {
        {[](pipeline_bench_texts& t) { t.modes = "proces"; }, "did you mean \"process\""},
        {[](pipeline_bench_texts& t) { t.modes = "process,"; }, "--modes: \"\""},
        {[](pipeline_bench_texts& t) { t.sizes = "640"; }, "--sizes: \"640\""},
        {[](pipeline_bench_texts& t) { t.rounds = 5000; }, "--rounds: 5000"},
        {[](pipeline_bench_texts& t) { t.seconds = "0"; }, "--seconds: \"0\""},
        {[](pipeline_bench_texts& t) { t.warm_up = "soon"; }, "--warm-up: \"soon\""},
        {[](pipeline_bench_texts& t) { t.seconds = "1", t.frames = 10; }, "exclude each other"},
        {[](pipeline_bench_texts& t) { t.depths = "0"; }, "--depths: \"0\""},
        {[](pipeline_bench_texts& t) { t.depths = "17"; }, "--depths: \"17\""},
        {[](pipeline_bench_texts& t) { t.depths = "3/"; }, "--depths: \"3/\""},
        {[](pipeline_bench_texts& t) { t.depths = "auto,3/49"; }, "--depths: \"3/49\""},
        {[](pipeline_bench_texts& t) { t.wants_lone = true, t.lone = "never"; }, "--lone: \"never\""},
        {[](pipeline_bench_texts& t) { t.plot = "x.png"; }, "must end in .svg"},
    };
    for (const auto& [change, expected] : bad) {
        std::string message;
        try {
            (void)read_pipeline(change);
        } catch (const config_error& e) {
            message = e.what();
        }
        CAPTURE(expected, message);
        REQUIRE(message.find(expected) != std::string::npos);
    }
}

TEST_CASE("An IPC bench has five rounds of all tables for 1 to 16 workers, a quick one fewer") {
    const ipc_bench_options o = read_options(ipc_bench_texts{});
    REQUIRE((o.rounds == 5 && o.processes == std::vector<u32>{1, 2, 4, 8, 16} && o.tables == ipc_tables()));
    ipc_bench_texts t;
    t.quick = true, t.tables = "hops", t.processes = "4,2";
    const ipc_bench_options quick = read_options(t);
    REQUIRE((quick.rounds == 3 && quick.processes == std::vector<u32>{2, 4}));
    REQUIRE((quick.wants("hops") && !quick.wants("memory")));
}

TEST_CASE("What a bench of IPC can't take is refused by the name of its option") {
    const std::pair<std::function<void(ipc_bench_texts&)>, const char*> bad[] = {
        {[](ipc_bench_texts& t) { t.tables = "hop"; }, "did you mean \"hops\""},
        {[](ipc_bench_texts& t) { t.processes = "0"; }, "--processes: \"0\""},
        {[](ipc_bench_texts& t) { t.processes = "1,"; }, "--processes: \"\""},
        {[](ipc_bench_texts& t) { t.processes = "65"; }, "1 to 64"},
        {[](ipc_bench_texts& t) { t.rounds = 5000; }, "--rounds: 5000"},
        {[](ipc_bench_texts& t) { t.plot = "x.png"; }, "must end in .svg"},
    };
    for (const auto& [change, expected] : bad) {
        ipc_bench_texts t;
        change(t);
        CAPTURE(expected);
        REQUIRE_THROWS_WITH(read_options(t), test::contains(expected));
    }
}

TEST_CASE("An unknown word after `carousel bench` is refused with a suggestion") {
    REQUIRE_NOTHROW(require_bench_command("raster"));
    REQUIRE_NOTHROW(require_bench_command("pipeline"));
    REQUIRE_NOTHROW(require_bench_command("--help"));
    REQUIRE_THROWS_WITH(require_bench_command("rastr"), test::contains("did you mean \"raster\""));
}
