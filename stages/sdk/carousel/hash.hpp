#pragma once
// A hash of an input plane for the run's ledger, made where the plane lies: on a GPU nothing but its eight
// bytes leaves the device. The same on every device; over the plane's elements in row order, without what its
// strides leave between the rows, and of a plane that the frame uses in part over that part alone.
// kernels/body/block_hash.hpp has the definition, plane_hash_name its name.
//
//   prepare():  hasher_ = std::make_unique<carousel::plane_hasher>(env);
//   process():  hasher_->enqueue(f, "color");
//   finish():   hasher_->give(f);                     // f.set_hash(value, plane_hash_name)

#include <memory>
#include <string_view>

#include <carousel/stage.hpp>

#include "kernels/plane_hash.hpp"

namespace carousel {

using kernels::plane_hash_name;

class plane_hasher {
public:
    /// Allocates: for prepare() alone.
    explicit plane_hasher(environment& env);

    /// Enqueues the hash of a plane on the frame's queue. Throws config_error: no such plane, or strides that
    /// are not those of rows at equal distances.
    void enqueue(frame& f, std::string_view plane, std::size_t input = 0);
    /// Behind the frame's completion: in finish().
    [[nodiscard]] u64 value(const frame& f) const noexcept;
    /// The same, to the run's ledger, with its name. Nothing for a void frame, which has no picture.
    void set_hash(frame& f) const noexcept;

private:
    std::unique_ptr<device::mapping> scratch_;  ///< null where none is needed
    std::unique_ptr<device::mapping> values_;   ///< a word a lane, which the device writes and the CPU reads
};

}  // namespace carousel
