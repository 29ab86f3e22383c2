// A recording as a sequence of records: valid ones in any order, cut off, nested, repeated, with changed
// lengths and with summaries that describe other records. Input: a program of steps, each a byte that selects
// the step and its parameters (see add()). So an input has checksums that fit, and reaches what follows them.
// What holds is that of fuzz_mcap.cpp, which has any bytes: see read_recording.hpp.
#include "frame/frame_format.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/read_recording.hpp"

namespace carousel {
namespace {

using namespace stages;

constexpr u64 most_steps = 200;
constexpr std::size_t most_file_bytes = std::size_t{1} << 18U;

mcap::preamble front_of(u8 rings) {
    recording r;
    r.id = "fuzz";
    for (u32 k = 0; k < rings; ++k) {
        recorded_ring ring;
        ring.stage = "stage" + std::to_string(k);
        ring.format = ring::frame_format::from_json(
            R"({"type":"t","planes":[{"name":"value","element":"u64","shape":[1],"offset":256}],"constants":{}})");
        ring.format.lay_out();
        r.rings.push_back(ring);
    }
    return preamble_of(r);
}

class file_of_records {
public:
    explicit file_of_records(u8 rings) : front_(front_of(rings)), bytes_(mcap::encode(front_)) {}

    void add(test::bytes& in) {
        const u8 what = in.number<u8>();
        switch (what % 12) {
            case 0:
                add_message(in);
                break;
            case 1:
            case 2:
                add_chunk(in);
                break;
            case 3:
                add_indexes(in);
                break;
            case 4:
                mcap::put(bytes_, mcap::schema{in.number<u8>(), "s", "protobuf", {}});
                break;
            case 5:
                mcap::put(bytes_, mcap::channel{in.number<u8>(), in.number<u8>(), "t", "protobuf", {}});
                break;
            case 6:  // data end
                mcap::put_record(bytes_, mcap::opcode::data_end,
                                 [](mcap::byte_writer& w) { w.number(u32{0}); });
                break;
            case 7:  // an entry of the summary, of a chunk that may not exist
                if (!chunks_.empty()) {
                    mcap::chunk_entry c = chunks_[in.number<u8>() % chunks_.size()];
                    change(c, in);
                    mcap::put(bytes_, c, front_.channels);
                }
                break;
            case 8:
                add_end(in);
                break;
            case 9:  // any record
                mcap::put_record(bytes_, static_cast<mcap::opcode>(in.number<u8>()),
                                 [&](mcap::byte_writer& w) {
                                     for (u8 k = in.number<u8>() % 32; k > 0; --k) w.number(in.number<u8>());
                                 });
                break;
            case 10:  // a byte of what is there
                if (!bytes_.empty()) bytes_[in.number<u32>() % bytes_.size()] = std::byte{in.number<u8>()};
                break;
            default: {  // the file ends here, or a part is repeated
                const std::size_t at = in.number<u32>() % (bytes_.size() + 1);
                if (in.number<u8>() % 2 == 0) {
                    bytes_.resize(at);
                } else {
                    const mcap::buffer part(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
                    bytes_.insert(bytes_.end(), part.begin(), part.end());
                }
            }
        }
    }
    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

private:
    /// Into the records of the next chunk.
    void add_message(test::bytes& in) {
        mcap::message m;
        m.channel = in.number<u8>();
        m.sequence = in.number<u8>();
        m.log_ns = in.number<u8>();
        mcap::buffer content;
        for (u8 k = in.number<u8>() % 64; k > 0; --k) content.push_back(std::byte{in.number<u8>()});
        m.data = content;
        mcap::put_message_head(records_, m);
        records_.insert(records_.end(), content.begin(), content.end());
        seen_ |= m.channel >= 1 && m.channel <= front_.channels.size() ? u64{1} << (m.channel - 1U) : 0;
    }
    void add_chunk(test::bytes& in) {
        mcap::chunk_entry c;
        c.start = bytes_.size();
        c.uncompressed = c.compressed = records_.size();
        c.channels = seen_;
        c.length = mcap::head_bytes + mcap::chunk_head_bytes + records_.size();
        const u32 crc = mcap::crc_of(records_);
        if (in.number<u8>() % 4 == 0) change(c, in);
        mcap::put_chunk_head(bytes_, c, crc);
        bytes_.insert(bytes_.end(), records_.begin(), records_.end());
        c.start = std::min<u64>(c.start, bytes_.size());
        chunks_.push_back(c);
        if (in.number<u8>() % 4 == 0) {  // the next chunk contains this one
            records_.assign(bytes_.begin() + static_cast<std::ptrdiff_t>(c.start), bytes_.end());
        } else {
            records_.clear();
            seen_ = 0;
        }
    }
    void add_indexes(test::bytes& in) {
        const u64 at = in.number<u8>();
        for (const mcap::channel& c : front_.channels)
            if (!chunks_.empty() && chunks_.back().has(c.id))
                mcap::put_message_index(bytes_, c.id, at, at);
            else
                mcap::put_empty_message_index(bytes_, c.id);
    }
    static void change(mcap::chunk_entry& c, test::bytes& in) {
        u64* const fields[] = {&c.start,        &c.length,   &c.index_length, &c.compressed,
                               &c.uncompressed, &c.channels, &c.first_ns,     &c.last_ns};
        u64& field = *fields[in.number<u8>() % std::size(fields)];
        field = in.number<u8>() % 2 == 0 ? field + in.number<u8>() - 128 : in.number<u64>();
        if (in.number<u8>() % 4 == 0) c.compression = in.number<u8>() % 2 == 0 ? "lz4" : "zstd";
    }
    void add_end(test::bytes& in) {
        const u64 summary = in.number<u8>() % 2 == 0 ? 0 : in.number<u32>() % (bytes_.size() + 1);
        mcap::buffer end;
        mcap::put_record(end, mcap::opcode::footer, [&](mcap::byte_writer& w) {
            w.number(summary);
            w.number(u64{0});
        });
        // the checksum is of the summary and of the footer up to the checksum
        const std::span<const std::byte> all(bytes_);
        u32 crc = mcap::crc_of(all.subspan(static_cast<std::size_t>(summary)));
        crc = mcap::crc_of(end, crc);
        mcap::byte_writer(end).number(in.number<u8>() % 4 == 0 ? 0 : crc);
        const u64 length = end.size() - mcap::head_bytes;
        std::memcpy(end.data() + 1, &length, sizeof length);
        bytes_.insert(bytes_.end(), end.begin(), end.end());
        mcap::byte_writer(bytes_).raw(std::as_bytes(std::span(mcap::magic)));
    }

    mcap::preamble front_;
    mcap::buffer bytes_, records_;
    std::vector<mcap::chunk_entry> chunks_;
    u64 seen_ = 0;
};

}  // namespace
}  // namespace carousel

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    test::bytes in(data, size);
    file_of_records file(1 + in.number<u8>() % 3);
    for (u64 k = 0; k < most_steps && in.left() > 0 && file.bytes().size() < most_file_bytes; ++k)
        file.add(in);
    test::read_recording(file.bytes());
    return 0;
}
