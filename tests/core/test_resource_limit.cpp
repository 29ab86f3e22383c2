#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/cgroup.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;

namespace {
/// A soft limit for the length of a test case.
class lowered_limit {
public:
    lowered_limit(__rlimit_resource_t of, rlim_t to) : of_(of) {
        REQUIRE(::getrlimit(of, &before_) == 0);
        const rlimit lower{to, before_.rlim_max};
        REQUIRE(::setrlimit(of, &lower) == 0);
    }
    ~lowered_limit() { ::setrlimit(of_, &before_); }
    lowered_limit(const lowered_limit&) = delete;
    lowered_limit& operator=(const lowered_limit&) = delete;

private:
    __rlimit_resource_t of_;
    rlimit before_{};
};
}  // namespace

TEST_CASE("each refusal names the error that occurred, and the limit that belongs to it") {
    for (const int e : {EAGAIN, ENOMEM, EMFILE, ENFILE, EINVAL}) {
        CHECK(no_thread_text(e).starts_with(std::strerror(e)));
        CHECK(no_file_text(e).starts_with(std::strerror(e)));
        CHECK(no_memory_text(e).starts_with(std::strerror(e)));
        CHECK(no_room_text(e, "do that").starts_with(std::strerror(e)));
    }
    CHECK_THAT(no_file_text(EMFILE), test::contains("ulimit -n"));
    CHECK_THAT(no_thread_text(EMFILE), test::contains("ulimit -n"));
    CHECK_THAT(no_thread_text(EAGAIN), !test::contains("ulimit -n"));
    CHECK_THAT(no_room_text(ENOSPC, "x"), test::contains("free some space on that disk"));
    CHECK_THAT(no_room_text(EDQUOT, "x"), test::contains("quota"));
    CHECK(no_room_text(EACCES, "choose another") == std::string(std::strerror(EACCES)) + "; choose another");
    CHECK_THAT(no_shared_room_text(ENOSPC), test::contains("carousel clean"));
}

TEST_CASE("a file's size beyond ulimit -f is EFBIG and not a lack of room") {
    std::signal(SIGXFSZ, SIG_IGN);
    std::FILE* const file = std::tmpfile();
    REQUIRE(file != nullptr);
    const char bytes[64] = {};
    const lowered_limit limit(RLIMIT_FSIZE, 40);
    errno = 0;
    CHECK_FALSE(write_whole(::fileno(file), bytes, sizeof bytes));
    const int why = errno;
    CHECK(why == EFBIG);
    CHECK_THAT(no_room_text(why, "x"),
               test::contains("40 bytes (ulimit -f)") && !test::contains("free some space"));
    CHECK_THAT(no_shared_room_text(why), test::contains("ulimit -f") && !test::contains("--shm-size"));
    std::fclose(file);
    std::signal(SIGXFSZ, SIG_DFL);
}

TEST_CASE("shortages pass, other errors remain") {
    for (const int e : {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOBUFS}) CHECK(is_shortage(e));
    for (const int e : {0, EFBIG, ENOSPC, ENOENT, EACCES}) CHECK_FALSE(is_shortage(e));
}

TEST_CASE("usable cores are at least one, and no more than the affinity mask has") {
    CHECK(usable_cores() >= 1);
    CHECK(usable_cores() <= affine_cores());
}
