#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runs/clean.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

TEST_CASE("the driver's files of one dead process are removed, and no others") {
    const std::filesystem::path folder = "/tmp/carousel-test-leftovers-" + std::to_string(getpid());
    std::filesystem::create_directories(folder);
    char mine[64], other[64];
    std::snprintf(mine, sizeof mine, "cuda.shm.%x.1a3.1", getuid());
    std::snprintf(other, sizeof other, "cuda.shm.%x.1a30.1", getuid());
    for (const std::string& name : {std::string(mine), std::string(other), std::string("carousel-x")})
        std::ofstream(folder / name) << "x";
    CHECK(supervisor::remove_driver_leftovers(0x1a3, folder.c_str()) == 1);
    CHECK_FALSE(std::filesystem::exists(folder / mine));
    CHECK(std::filesystem::exists(folder / other));
    CHECK(std::filesystem::exists(folder / "carousel-x"));
    CHECK(supervisor::remove_driver_leftovers(1, "/no/such/folder") == 0);
    std::filesystem::remove_all(folder);
}
