#include "stages/hosts/link/message.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "core/secret.hpp"
#include "hosts/seal.hpp"

namespace carousel::hosts {
namespace {

static_assert(std::endian::native == std::endian::little,
              "a link sends numbers in the byte order of memory, which must be little-endian");

class writer {
public:
    template <typename T>
    requires std::is_arithmetic_v<T>
    void operator()(const T& value) { append(&value, sizeof value); }
    void operator()(const std::string& text) { sized(text.data(), text.size()); }
    void operator()(const std::vector<std::byte>& bytes) { sized(bytes.data(), bytes.size()); }
    template <std::size_t N>
    void operator()(const std::array<u8, N>& bytes) {
        append(bytes.data(), N);
    }
    void operator()(const used_planes& used) {
        (*this)(used.planes);
        for (u32 k = 0; k < used.of.size(); ++k)
            if ((used.planes >> k & 1U) != 0) append(used.of[k].data(), sizeof used.of[k]);
    }
    message_bytes out;

private:
    void sized(const void* from, std::size_t bytes) {
        (*this)(static_cast<u32>(bytes));
        append(from, bytes);
    }
    void append(const void* from, std::size_t bytes) {
        const auto* at = static_cast<const std::byte*>(from);
        out.insert(out.end(), at, at + bytes);
    }
};

class reader {
public:
    explicit reader(std::span<const std::byte> bytes) : rest_(bytes) {}
    template <typename T>
    requires std::is_arithmetic_v<T>
    void operator()(T& value) { take(&value, sizeof value); }
    void operator()(std::string& text) {
        text.resize(size(longest_text));
        take(text.data(), text.size());
    }
    void operator()(std::vector<std::byte>& bytes) {
        bytes.resize(size(most_bytes));
        take(bytes.data(), bytes.size());
    }
    template <std::size_t N>
    void operator()(std::array<u8, N>& bytes) {
        take(bytes.data(), N);
    }
    void operator()(used_planes& used) {
        (*this)(used.planes);
        good_ = good_ && used.planes >> used.of.size() == 0;
        for (u32 k = 0; good_ && k < used.of.size(); ++k)
            if ((used.planes >> k & 1U) != 0) take(used.of[k].data(), sizeof used.of[k]);
    }
    [[nodiscard]] bool whole() const { return good_ && rest_.empty(); }

private:
    u32 size(u32 most) {
        u32 n = 0;
        (*this)(n);
        good_ = good_ && n <= most && n <= rest_.size();
        return good_ ? n : 0;
    }
    void take(void* to, std::size_t bytes) {
        good_ = good_ && bytes <= rest_.size();
        if (!good_ || bytes == 0) return;
        std::memcpy(to, rest_.data(), bytes);
        rest_ = rest_.subspan(bytes);
    }
    std::span<const std::byte> rest_;
    bool good_ = true;
};

// The fields of each message, for both directions.
template <typename F>
void fields(F& f, auto& m) {
    using T = std::remove_const_t<std::remove_reference_t<decltype(m)>>;
    if constexpr (std::is_same_v<T, hello>) {
        f(m.version), f(m.run), f(m.pipeline), f(m.ring), f(m.format), f(m.payload_bytes), f(m.parameters);
        f(m.parameter_bytes), f(m.epoch), f(m.oldest), f(m.begins), f(m.packed), f(m.by_durable), f(m.kind);
        f(m.fresh);
    } else if constexpr (std::is_same_v<T, proof_message>) {
        f(m.fresh), f(m.of_token), f(m.sent_ns), f(m.here_ns);
    } else if constexpr (std::is_same_v<T, welcome>) {
        f(m.run), f(m.committed), f(m.durable), f(m.next), f(m.window);
    } else if constexpr (std::is_same_v<T, refuse> || std::is_same_v<T, bye>) {
        f(m.why);
    } else if constexpr (std::is_same_v<T, frame_message>) {
        f(m.epoch), f(m.ring_sequence), f(m.hash), f(m.bytes), f(m.packed_bytes), f(m.packed), f(m.born_ns);
        f(m.capture_ns), f(m.clock), f(m.time_s), f(m.frame_number), f(m.parameter_number), f(m.parameters);
        f(m.metadata), f(m.used), f(m.tombstone_reason);
    } else if constexpr (std::is_same_v<T, ack>) {
        f(m.committed), f(m.durable);
    } else if constexpr (std::is_same_v<T, ping>) {
        f(m.sent_ns);
    } else if constexpr (std::is_same_v<T, pong>) {
        f(m.sent_ns), f(m.here_ns);
    } else {
        f(m.ring_sequence);
    }
}

template <std::size_t K = 0>
std::optional<message> decode_as(u8 kind, std::span<const std::byte> rest) {
    if constexpr (K < std::variant_size_v<message>) {
        if (kind != K + 1) return decode_as<K + 1>(kind, rest);
        std::variant_alternative_t<K, message> m;
        reader r(rest);
        fields(r, m);
        if (r.whole()) return m;
    }
    return std::nullopt;
}

}  // namespace

message_bytes encode(const message& m) {
    writer w;
    w(static_cast<u8>(m.index() + 1));
    std::visit([&](const auto& each) { fields(w, each); }, m);
    return std::move(w.out);
}

std::optional<message> decode(std::span<const std::byte> bytes) {
    if (bytes.empty() || bytes.size() > longest_message) return std::nullopt;
    // If a HELLO has another version, only its version number is decoded, so that the difference can be
    // reported.
    hello other;
    if (bytes[0] == std::byte{1} && bytes.size() >= 1 + sizeof other.version) {
        std::memcpy(&other.version, bytes.data() + 1, sizeof other.version);
        if (other.version != link_version) return other;
    }
    return decode_as(static_cast<u8>(bytes[0]), bytes.subspan(1));
}

token_file token_file::read(const std::string& path) {
    return token_file(read_secret(path, "the token of a link"));
}

// The proof covers the hello, so an intermediary cannot change the sender or the format in it.
proof token_file::prove(side prover, const hello& h, const nonce& of_receiver) const {
    const message_bytes encoded = encode(h);
    const char of = static_cast<char>(prover);
    return seal(
        secret_,
        {{reinterpret_cast<const char*>(encoded.data()), encoded.size()}, {&of, 1}, view_of(of_receiver)});
}

bool token_file::fits(const proof& given, side prover, const hello& h, const nonce& of_receiver) const {
    return same_seal(prove(prover, h, of_receiver), view_of(given));
}

}  // namespace carousel::hosts
