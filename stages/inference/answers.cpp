#include "stages/inference/answers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/output_file.hpp"

namespace carousel::stages {
namespace {

/// FNV-1a of the bytes, continuing from `value`.
u64 hash(const device::mapping& memory, u64 value) {
    for (const std::byte b : std::span(memory.host_data(), memory.bytes()))
        value = (value ^ static_cast<u64>(b)) * 0x100'0000'01B3;
    return value;
}

}  // namespace

description answers::configure(const configuration& with) {
    const input_description& input = require_one_input(with, "classes of views");
    require_format(input.format, classes_format(0), with.stage, input.stage);
    batch_ = input.format.find("class")->shape[0];
    out_ = with.settings->text("out", "");
    if (!out_.empty()) out_ = with.path(out_);
    return {};
}

void answers::prepare(environment& env) {
    for (u32 lane = 0; lane < env.in_flight(); ++lane)
        lanes_.push_back({env.context().allocate_host(batch_ * sizeof(u32)),
                          env.context().allocate_host(batch_ * kernels::net_classes * sizeof(i32))});
    if (out_.empty()) return;
    const std::optional<output_target> to = find_output(out_);
    if (to && to->is_file)  // a batch has the same offset in every incarnation, so the file is never
                            // truncated
        file_.reset(::open(to->path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    else if (to)
        file_.reset(open_output(*to));
    if (!file_) throw output_error(fmt::format("opening {}: {}", out_, output_cause(errno)));
    in_place_ = to->is_file;
}

void answers::process(frame& f) {
    const answer& to = lanes_[f.lane()];
    f.queue().copy(to.classes->data(), f.input().bytes("class").data(), to.classes->bytes());
    f.queue().copy(to.scores->data(), f.input().bytes("score").data(), to.scores->bytes());
}

void answers::finish(frame& f) {
    const answer& got = lanes_[f.lane()];
    f.set_hash(hash(*got.scores, hash(*got.classes, 0xCBF2'9CE4'8422'2325)), "classes and scores");
    if (!file_) return;
    std::vector<u8> text(batch_);
    for (u64 k = 0; k < batch_; ++k)
        text[k] = static_cast<u8>('0' + reinterpret_cast<const u32*>(got.classes->host_data())[k] % 10);
    if (!f.is_owned()) return;
    int failed = 0;
    if (!in_place_)
        failed = write_output(file_.get(), std::as_bytes(std::span(text)));
    else if (!write_whole_at(file_.get(), text.data(), text.size(), f.frame_number() * batch_))
        failed = errno;
    if (failed != 0)
        throw_output_error(out_, failed, fmt::format("writing {}: {}", out_, output_cause(failed)));
}

}  // namespace carousel::stages
