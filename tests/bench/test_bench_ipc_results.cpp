// The report of `carousel bench ipc` for a GPU, from results that the test makes.

#include "bench/ipc/result.hpp"
#include "core/json.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::bench;
using namespace carousel::test;

namespace {

ipc_bench_result some_result() {
    ipc_bench_result r;
    r.gpu.name = "a GPU";
    r.gpu.memory_floor = 4000, r.gpu.pcie_floor = 60;
    r.gpu.missing["memory, peer GPU"] = "only one GPU here";
    gpu_memory_row own;
    own.kind = "own memory", own.on = "same GPU", own.bytes = 256U << 20U;
    own.sizes = {{1048576, 5000}, {268435456, 3600}};
    own.read = 3600, own.ratio = 1, own.verified = true;
    gpu_memory_row legacy = own;
    legacy.kind = "legacy handle", legacy.read = 1800, legacy.ratio = 0.5;
    gpu_memory_row host = own;
    host.kind = "memfd, registered", host.on = "host", host.read = 45;
    r.gpu.memory = {own, legacy, host};
    r.gpu.hop_floors = {7, 1.5, 0.5};
    r.gpu.hops = {{"IPC event, polled", "one process", 5, 6, 7, 1, 300, true},
                  {"IPC event, polled", "time slices", 140, 150, 7, 28, 300, true}};
    r.hop_floor_us = 0.1;
    r.hops = {{"futex", 2, 3, 1.9, 20'000, true}, {"MPI_Send (Open MPI)", 0.4, 0.5, 0, 20'000, true}};
    r.missing["Boost message_queue"] = "No such file or directory";
    r.gpu.primitives = {{"queue", "Carousel", "time slices", 4, 2e6, 900, 950, true},
                        {"queue", "a ring of cuda::atomic", "one process", 4, 3e6, 700, 710, true}};
    return r;
}

}  // namespace

TEST_CASE("a GPU's rows are compared with its hardware limit at the memory's place") {
    const std::string table = table_of(some_result());
    CHECK(table.find(" 90 %") != std::string::npos);  // of its own memory
    CHECK(table.find(" 45 %") != std::string::npos);  // of a handle's at half the rate
    CHECK(table.find(" 75 %") != std::string::npos);  // of the bus
    CHECK(table.find("not here: memory, peer GPU: only one GPU here") != std::string::npos);
    CHECK(table.find("WRONG") == std::string::npos);
    CHECK(table.find("a ring of cuda::atomic") != std::string::npos);
}

TEST_CASE("each table of the results is followed by a legend of its columns") {
    ipc_bench_result r = some_result();
    r.memory = {{"local", 4, 4, 4, 100, 10, 1, {}, true}};
    r.primitives = {{"queue", "Carousel", true, 2, 1e6, 900, 950, true}};
    const std::string table = table_of(r);
    for (const char* columns :
         {"time of one\ndependent load", "\"to the floor\" is the median divided by the floor",
          "time of one operation of one worker", "\"both\" and \"memcpy\" are copies by the driver",
          "\"to one process\" is the median", "\"number\" is the number of processes"})
        CHECK_THAT(table, contains(columns));
    CHECK(table_of({}).find("chase") == std::string::npos);
}

TEST_CASE("a hop is compared with its floor and, if available, its peer in one process") {
    const std::string table = table_of(some_result());
    const auto line_of = [&](const std::string& means) {
        const std::size_t at = table.find("\n" + means);
        REQUIRE(at != std::string::npos);
        return table.substr(at + 1, table.find('\n', at + 1) - at - 1);
    };
    CHECK(line_of("futex").find("1.900          20.0") != std::string::npos);
    CHECK(line_of("MPI_Send").find("0.500                        4.0") != std::string::npos);
    CHECK(line_of("IPC event, polled                    time slices").find("20.00") != std::string::npos);
    CHECK(table.find("not here: Boost message_queue: No such file or directory") != std::string::npos);
    const auto parsed = nlohmann::json::parse(json_of(some_result()));
    CHECK(parsed.at("hops").at(0).at("threads_us") == 1.9);
    CHECK(parsed.at("hop_floor_us") == 0.1);
    CHECK(parsed.at("gpu").at("hops").at(1).at("p95_us") == 150);
    CHECK(parsed.at("gpu").at("floors").at("two_blocks_us") == 0.5);
    CHECK(parsed.at("missing").at("Boost message_queue") == "No such file or directory");
}

TEST_CASE("a GPU's rows are in the JSON, and what is missing with its reason") {
    const auto parsed = nlohmann::json::parse(json_of(some_result())).at("gpu");
    CHECK(parsed.at("memory").at(1).at("ratio_to_local") == 0.5);
    CHECK(parsed.at("hops").at(1).at("where") == "time slices");
    CHECK(parsed.at("primitives").at(0).at("operations_s") == 2e6);
    CHECK(parsed.at("primitives").at(1).at("where") == "one process");
    CHECK(parsed.at("floors").at("memory_gb_s") == 4000);
    CHECK(parsed.at("missing").at("memory, peer GPU") == "only one GPU here");
}

TEST_CASE("data that isn't right names its row of the GPU") {
    ipc_bench_result r = some_result();
    CHECK(wrong_rows(r).empty());
    r.gpu.memory[1].verified = false, r.gpu.hops[1].verified = false;
    r.gpu.primitives[0].verified = false;
    CHECK(wrong_rows(r) ==
          "legacy handle, same GPU; queue in kernels, Carousel, 4 of time slices; IPC event, polled, time "
          "slices");
    CHECK(table_of(r).find("WRONG") != std::string::npos);
}

TEST_CASE("a GPU's memory and hops are drawn, a curve for each kind and means") {
    const std::string svg = plot_of(some_result());
    CHECK(svg.find("IPC event, polled") != std::string::npos);
    CHECK(svg.find("legacy handle, same GPU") != std::string::npos);
    CHECK(svg.find("Primitives in kernels") != std::string::npos);
    CHECK(plot_of(ipc_bench_result{}).find("IPC event") == std::string::npos);
}
