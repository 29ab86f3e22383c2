// The actions of the second process. The parent starts this executable with the name of the hidden test case
// given below.

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/cpu/memfd.hpp"
#include "tests/device/child.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skip.hpp"
#if defined(CAROUSEL_WITH_CUDA) && defined(CAROUSEL_TEST_ON_CUDA)
#include "tests/device/cuda/test_kernels.hpp"
#endif

using namespace carousel;
using nlohmann::json;

namespace {

struct order {
    json what;
    std::vector<shm::unique_fd> fds;
};

bool next(order& o) {
    shm::message m;
    if (shm::receive_message(test::child_socket, m, 60 * ns_per_s) != shm::receive_status::ok) return false;
    o.what = json::parse(m.text);
    o.fds = std::move(m.fds);
    return true;
}

void reply(const json& what) { REQUIRE(shm::send_message(test::child_socket, what.dump())); }

device::status_word status_from(const json& j) {
    return {j.at("sequence").get<u64>(), j.at("epoch").get<u32>(), j.at("state").get<u32>()};
}

/// Maps the received memory, imports the event, and performs single actions on request.
void follow_orders() {
    order first;
    REQUIRE(next(first));
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const bool by_fd = first.fds.size() == 2;
    const auto memory = context->map(
        test::handle_from(first.what.at("memory"), by_fd ? first.fds[1].get() : -1), device::access::write);
    const device::memfd_mapping words(test::handle_from(first.what.at("words"), first.fds.at(0).get()));
    const auto* word = reinterpret_cast<const std::atomic<u64>*>(words.data());
    const auto event =
        context->import_event(context->kind(), test::bytes_from<64>(first.what.at("event")), word);
    reply({{"imported", event != nullptr}});
    order o;
    while (next(o)) {
        const std::string request = o.what.at("do");
        if (request == "done") {
            const u64 tag = o.what.at("tag");
            const u64 until = now_ns() + o.what.value("within_ms", u64{0}) * ns_per_ms;
            bool done = event->done(tag);
            while (!done && now_ns() < until) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                done = event->done(tag);
            }
            reply({{"done", done}});
        } else if (request == "read") {
            reply({{"bytes", test::read_back(*context, *queue, memory->data() + o.what.at("at").get<u64>(),
                                             o.what.at("count"))}});
        } else if (request == "fill") {
            queue->fill(memory->data() + o.what.at("at").get<u64>(), o.what.at("value"), o.what.at("count"));
            queue->drain();
            reply(json::object());
        } else if (request == "check") {
            const auto torn = context->allocate_host(sizeof(u32));
            queue->check_status(reinterpret_cast<const device::status_word*>(memory->data()),
                                status_from(o.what), reinterpret_cast<u32*>(torn->data()));
            queue->drain();
            reply({{"torn", *reinterpret_cast<const u32*>(torn->host_data())}});
        }
    }
}

/// Maps the received memory for reading, reads it, and then attempts to write to it.
void write_out_of_bounds() {
    order first;
    REQUIRE(next(first));
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto memory =
        context->map(test::handle_from(first.what.at("memory"), first.fds.at(0).get()), device::access::read);
    const u8 seen = test::read_back(*context, *queue, memory->data(), 1).front();
    reply({{"read", seen}, {"read_only", memory->read_only()}});
    try {
        queue->write_status(reinterpret_cast<device::status_word*>(memory->data() + 4096), {1, 2, 3});
        queue->drain();
        reply({{"status", 0}, {"code", 0}});
    } catch (const cuda_error& e) {
        reply({{"status", e.status()}, {"code", e.code()}});
    }
}

/// Fills the middle one of three slots to its last byte, then writes beyond it by the requested number of
/// bytes.
void overrun() {
    order first;
    REQUIRE(next(first));
    const u64 bytes = first.what.at("slot_bytes"), beyond = first.what.at("beyond");
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto memory =
        context->map(test::handle_from(first.what.at("memory"), first.fds), device::access::write);
    queue->fill(memory->slot(1, bytes), 0x66, bytes);
    queue->drain();
    reply({{"gaps", memory->has_gaps()}});
    try {
        queue->write_status(reinterpret_cast<device::status_word*>(memory->slot(1, bytes) + bytes + beyond),
                            {1, 2, 3});
        queue->drain();
        reply({{"status", 0}, {"code", 0}});
    } catch (const cuda_error& e) {
        reply({{"status", e.status()}, {"code", e.code()}});
    }
}

/// Records an event behind work that doesn't end, and waits to be killed.
void record_and_wait() {
    order first;
    REQUIRE(next(first));
    const device::memfd_mapping words(test::handle_from(first.what.at("words"), first.fds.at(0).get()));
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto event = context->make_event(reinterpret_cast<std::atomic<u64>*>(words.data()));
    test::gate gate(*context);
    gate.block(*queue);
    event->record(*queue, first.what.at("tag"));
    reply({{"event", test::bytes_to_json(event->export_handle())}});
    std::this_thread::sleep_for(std::chrono::seconds(15));
}

#if defined(CAROUSEL_WITH_CUDA) && defined(CAROUSEL_TEST_ON_CUDA)
/// Faults, and reports how each call answers from then on.
void fault() {
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    const auto event = context->make_event(nullptr);
    const auto memory = context->allocate(4096);
    const auto answer = [](auto&& call) -> json {
        try {
            call();
            return {{"error", "none"}};
        } catch (const cuda_error& e) {
            return {{"error", "cuda_error"}, {"status", e.status()}, {"code", e.code()}, {"what", e.what()}};
        } catch (const std::exception& e) {
            return {{"error", "other"}, {"what", e.what()}};
        }
    };
    queue->fault();
    json all;
    try {
        event->record(*queue, 1);
    } catch (const cuda_error&) {  // the fault may occur before our next step
    }
    all["wait"] = answer([&] { event->wait(); });
    all["done"] = answer([&] { (void)event->done(); });
    all["fill"] = answer([&] { queue->fill(memory->data(), 1, 16); });
    all["status"] = answer([&] {
        queue->write_status(reinterpret_cast<device::status_word*>(memory->data()), {1, 1, 1});
    });
    all["record"] = answer([&] { event->record(*queue, 2); });
    all["drain"] = answer([&] { queue->drain(); });
    reply(all);
}
#endif

}  // namespace

TEST_CASE("child process", "[.child]") {
    const char* role = std::getenv("CAROUSEL_TEST_CHILD");
    if (role == nullptr) CAROUSEL_SKIP("only as the second process of another test");
    ::alarm(90);  // no process here runs longer than its parent waits
    const std::string name = role;
    if (name == "orders") follow_orders();
    if (name == "wild-write") write_out_of_bounds();
    if (name == "overrun") overrun();
    if (name == "recorder") record_and_wait();
#if defined(CAROUSEL_WITH_CUDA) && defined(CAROUSEL_TEST_ON_CUDA)
    if (name == "fault") fault();
#endif
}
