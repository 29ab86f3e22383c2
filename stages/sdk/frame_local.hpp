#pragma once
// The value that frame::local() returns: one object of any type, created by the first call. Has no
// synchronisation of its own, because the runner's queue between process() and finish() orders their
// accesses.

#include <memory>
#include <stdexcept>
#include <typeinfo>

namespace carousel {

class frame_local {
public:
    template <typename T>
    [[nodiscard]] T& get() {
        if (!object_) {
            object_ = std::make_shared<T>();
            type_ = &typeid(T);
        } else if (*type_ != typeid(T)) {
            throw std::logic_error(
                "frame::local(): this frame's object is of another type; process() and finish() must name "
                "the same one");
        }
        return *static_cast<T*>(object_.get());
    }
    void clear() noexcept { object_.reset(); }

private:
    std::shared_ptr<void> object_;
    const std::type_info* type_ = nullptr;
};

}  // namespace carousel
