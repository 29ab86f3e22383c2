#pragma once
// A hash of an input plane for the run's ledger, computed on the device that holds the plane: only the eight
// bytes of the hash are copied from a GPU. The value is the same on every device. The hash covers the plane's
// elements in row order, without the padding between rows; if the frame uses only a part of the plane, the
// hash covers that part. kernels/body/block_hash.hpp has the definition; its name is plane_hash_name.
//
//   prepare():  hasher_ = std::make_unique<carousel::plane_hasher>(env);
//   process():  hasher_->enqueue(f, "color");
//   finish():   hasher_->set_hash(f);                 // f.set_hash(value, plane_hash_name)

#include <memory>
#include <string_view>

#include <carousel/stage.hpp>

#include "kernels/plane_hash.hpp"

namespace carousel {

using kernels::plane_hash_name;

/// Computes the hash of one input plane per frame. It must be created in prepare() and used by one stage
/// object only.
class plane_hasher {
public:
    /// Allocates memory, so call it only in prepare().
    explicit plane_hasher(environment& env);

    /// Enqueues the hash of a plane on the frame's queue. Throws config_error if there is no such plane, or
    /// if its strides are not those of equidistant rows.
    void enqueue(frame& f, std::string_view plane, std::size_t input = 0);
    /// Returns the hash; may be called after the frame's work is complete, that is, in finish().
    [[nodiscard]] u64 value(const frame& f) const noexcept;
    /// Passes the hash and its name to the run's ledger, in finish(). Does nothing for a tombstone frame,
    /// which has no image.
    void set_hash(frame& f) const noexcept;

private:
    std::unique_ptr<device::mapping> scratch_;  ///< null if no memory is needed
    std::unique_ptr<device::mapping>
        values_;  ///< one word per lane, written by the device and read by the CPU
};

}  // namespace carousel
