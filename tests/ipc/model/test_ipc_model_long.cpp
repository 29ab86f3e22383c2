// The larger set-ups: more faults at once. Up to 3 GiB, a minute or two.
#include "check.hpp"

using namespace carousel::ipc_model;

TEST_CASE("semaphore: the large set-ups hold") { check(large<semaphore_setup>()); }
TEST_CASE("gates: the large set-ups hold") { check(large<gate_setup>()); }
TEST_CASE("repairers: the large set-ups hold") { check(large<repairer_setup>()); }
TEST_CASE("queue: the large set-ups hold") { check(large<queue_setup>()); }
TEST_CASE("work queue: the large set-ups hold") { check(large<work_setup>()); }
TEST_CASE("pool: the large set-ups hold") { check(large<pool_setup>()); }
