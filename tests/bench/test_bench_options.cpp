// What `carousel bench` understands and what it refuses.
#include <functional>

#include "bench/options.hpp"
#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::bench;

namespace {

bench_options read(const std::function<void(bench_texts&)>& change) {
    bench_texts t;
    t.what = "raster";
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
    const bench_options o = read([](bench_texts& t) { t.triangles = "7,10k,2.5M", t.size = "1x2,1920x1080"; });
    REQUIRE(o.triangles == std::vector<u32>{7, 10'000, 2'500'000});
    REQUIRE(o.sizes == std::vector<picture_size>{{1, 2}, {1920, 1080}});
}

TEST_CASE("Devices are cpu and cuda:N") {
    REQUIRE_FALSE(read([](bench_texts&) {}).cuda);
    const bench_options third = read([](bench_texts& t) { t.device = "cuda:2"; });
    REQUIRE(third.cuda);
    REQUIRE(third.ordinal == 2);
    for (const char* bad : {"gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", ""})
        REQUIRE(refusal([&](bench_texts& t) { t.device = bad; }).find("is no device") != std::string::npos);
}

TEST_CASE("Each bad value is refused by the name of its option, and says what would do") {
    const std::pair<std::function<void(bench_texts&)>, const char*> bad[] = {
        {[](bench_texts& t) { t.what = "rastr"; }, "did you mean \"raster\""},
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
        {[](bench_texts& t) { t.peer = "opengl", t.shading = "ids"; }, "lit pictures only"},
        {[](bench_texts& t) { t.simd = "mmx"; }, "--simd: \"mmx\""},
        {[](bench_texts& t) { t.device = "cuda:0", t.threads = 2; }, "for --device cpu"},
        {[](bench_texts& t) { t.plot = "x.png"; }, "must end in .svg"},
    };
    for (const auto& [change, expected] : bad) {
        const std::string said = refusal(change);
        CAPTURE(expected, said);
        REQUIRE(said.find(expected) != std::string::npos);
    }
}

TEST_CASE("The option --json without a file means stdout") {
    REQUIRE(read([](bench_texts&) {}).json.empty());
    REQUIRE(read([](bench_texts& t) { t.wants_json = true; }).json == "-");
    REQUIRE(read([](bench_texts& t) { t.wants_json = true, t.json = "r.json"; }).json == "r.json");
}
