#pragma once
// Frames over loopback from one transport to another, both in the calling thread. The source memory may be
// memory that the CPU can't read.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "stages/hosts/ucx/transport.hpp"
#include "tests/support/catch.hpp"

namespace carousel::test {

struct sent_memory {
    const std::byte* at;                                    ///< as passed to the transport
    std::function<void(std::span<const std::byte>)> write;  ///< from its beginning; done when it returns
    bool of_gpu = false;
};

class frame_exchange {
public:
    /// Throws config_error, as a transport does.
    explicit frame_exchange(bool gpu_memory)
        : receiver_(in_, {.address = "127.0.0.1"}),
          sender_(out_, {.address = "127.0.0.1", .gpu_memory = gpu_memory}) {
        while (!receiver_.listen(port_)) ++port_;
        connect();
    }

    void connect() { sender_.connect(++connection_, "127.0.0.1", port_); }
    void close() { sender_.close(connection_); }
    void send(u64 ring_sequence, const std::byte* from, u64 bytes) {
        std::vector<std::byte> header(sizeof ring_sequence);
        std::memcpy(header.data(), &ring_sequence, sizeof ring_sequence);
        sender_.send_frame(connection_, header, from, bytes, ring_sequence);
    }
    /// Progresses both until `so` holds. Returns false if it does not hold within ten seconds.
    [[nodiscard]] bool until(const std::function<bool()>& so) {
        const u64 end = now_ns() + 10 * ns_per_s;
        while (!so()) {
            if (now_ns() > end) return false;
            if (!(sender_.progress() | receiver_.progress())) sender_.wait(ns_per_ms);
            receiver_.trust(in_.newest);
        }
        return true;
    }

    struct frame {
        u64 ring_sequence;
        std::vector<std::byte> bytes;
        bool over = false, whole = false;
    };
    /// In the order in which they began to arrive.
    [[nodiscard]] const std::vector<std::unique_ptr<frame>>& received() const { return in_.frames; }
    [[nodiscard]] u64 over() const {
        return static_cast<u64>(
            std::count_if(in_.frames.begin(), in_.frames.end(), [](const auto& each) { return each->over; }));
    }
    /// The frames whose memory is free again.
    [[nodiscard]] const std::set<u64>& sent() const { return out_.sent; }
    void forget() {
        in_.frames.clear();
        out_.sent.clear();
    }

private:
    struct receiver final : hosts::transport::events {
        std::vector<std::unique_ptr<frame>> frames;
        u32 newest = 0;  ///< newest connection
        void accepted(u32 connection) override { newest = connection; }
        void closed(u32, const std::string&) override {}
        void message_received(u32, std::span<const std::byte>) override {}
        std::byte* frame_begins(u32, std::span<const std::byte> header, u64 bytes, u64& ticket) override {
            ticket = frames.size();
            frames.push_back(std::make_unique<frame>(frame{0, std::vector<std::byte>(bytes)}));
            std::memcpy(&frames.back()->ring_sequence, header.data(), sizeof(u64));
            return frames.back()->bytes.data();
        }
        void frame_received(u64 ticket, bool whole) override {
            frames[ticket]->whole = whole;
            frames[ticket]->over = true;
        }
        void frame_sent(u32, u64) override {}
    } in_;
    struct sender final : hosts::transport::events {
        std::set<u64> sent;
        void accepted(u32) override {}
        void closed(u32, const std::string&) override {}
        void message_received(u32, std::span<const std::byte>) override {}
        std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
        void frame_received(u64, bool) override {}
        void frame_sent(u32, u64 ring_sequence) override { sent.insert(ring_sequence); }
    } out_;
    hosts::transport receiver_, sender_;
    u16 port_ = 47300;
    u32 connection_ = 0;
};

inline std::vector<std::byte> noise(u64 bytes, u32 seed) {
    std::mt19937 dice(seed);
    std::vector<std::byte> out(bytes);
    for (std::byte& b : out) b = static_cast<std::byte>(dice());
    return out;
}

inline constexpr u64 exchanged_bytes = 32U << 20U;  ///< `from` has at least these

/// Short frames, those about as long as a piece or a segment of UCX, and pictures.
inline void check_frames_of_every_size(const sent_memory& from) {
    frame_exchange link(from.of_gpu);
    const std::vector<std::byte> whole = noise(exchanged_bytes, 1);
    from.write(whole);
    std::vector<u64> sizes = {1,       7,       255,     4096,      8191,           16'383,    16'384,
                              119'999, 120'000, 120'001, 1U << 20U, 1'048'577,      3'686'400, 8'388'613,
                              1,       124'096, 360'001, 33,        exchanged_bytes};
    for (u64 k = 0; k < sizes.size(); ++k) link.send(k, from.at + (exchanged_bytes - sizes[k]), sizes[k]);
    REQUIRE(link.until([&] { return link.over() == sizes.size() && link.sent().size() == sizes.size(); }));
    for (u64 k = 0; k < sizes.size(); ++k) {
        const auto& f = *link.received()[k];
        INFO("frame of " << sizes[k] << " bytes");
        CHECK(f.ring_sequence == k);
        CHECK(f.whole);
        REQUIRE(f.bytes.size() == sizes[k]);
        CHECK(std::memcmp(f.bytes.data(), whole.data() + (exchanged_bytes - sizes[k]), sizes[k]) == 0);
    }
}

/// After frame_sent() of all frames the memory is overwritten at once: it must not be read any more.
inline void check_broken_connections(const sent_memory& from) {
    frame_exchange link(from.of_gpu);
    constexpr u64 frames = 4, bytes = exchanged_bytes / frames;
    u64 cut = 0;
    for (u32 round = 1; round <= 12; ++round) {
        const std::vector<std::byte> whole = noise(exchanged_bytes, round);
        from.write(whole);
        for (u64 k = 0; k < frames; ++k) link.send(k, from.at + k * bytes, bytes);
        const u64 most = round % 3;  // frames that are complete before it breaks
        REQUIRE(link.until([&] { return link.received().size() > most; }));
        link.close();
        REQUIRE(link.until([&] { return link.sent().size() == frames; }));
        from.write(std::vector<std::byte>(exchanged_bytes));
        REQUIRE(link.until([&] { return link.over() >= link.received().size() - 1; }));
        for (const auto& f : link.received()) {
            if (!f->whole) ++cut;
            if (f->whole)
                CHECK(std::memcmp(f->bytes.data(), whole.data() + f->ring_sequence * bytes, bytes) == 0);
        }
        link.connect();
        from.write(whole);
        link.send(9, from.at, bytes);
        REQUIRE(link.until(
            [&] { return link.received().back()->ring_sequence == 9 && link.received().back()->over; }));
        CHECK(link.received().back()->whole);
        CHECK(std::memcmp(link.received().back()->bytes.data(), whole.data(), bytes) == 0);
        REQUIRE(
            link.until([&] { return link.sent().count(9) == 1 && link.over() == link.received().size(); }));
        link.forget();
    }
    CHECK(cut > 0);
}

}  // namespace carousel::test
