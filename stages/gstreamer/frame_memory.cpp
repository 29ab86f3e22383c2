#include "stages/gstreamer/frame_memory.hpp"

#include <chrono>
#include <utility>

namespace carousel::gstreamer {

const std::byte* frame_memory::map() {
    const std::lock_guard alone(mutex_);
    if (!own_.empty()) return own_.data();
    ++maps_;
    return slot_;
}

// An element may have moved the beginning of its memory, so the address identifies the slot only by its
// range.
void frame_memory::unmap(const std::byte* mapped) {
    std::shared_ptr<const void> ended;  // destroyed without the mutex
    const std::lock_guard alone(mutex_);
    if (maps_ == 0 || mapped < slot_ || mapped > slot_ + bytes_) return;
    if (--maps_ != 0) return;
    unmapped_.notify_all();
    if (!own_.empty()) ended = std::move(keeps_);
}

void frame_memory::keep(std::shared_ptr<const void> keeps) {
    const std::lock_guard alone(mutex_);
    if (maps_ != 0) keeps_ = std::move(keeps);
}

bool frame_memory::release(u64 wait_ns) {
    std::unique_lock alone(mutex_);
    if (own_.empty()) own_.assign(slot_, slot_ + bytes_);
    return unmapped_.wait_for(alone, std::chrono::nanoseconds(wait_ns), [this] { return maps_ == 0; });
}

namespace {

struct wrapped_memory {
    GstMemory base;
    std::shared_ptr<frame_memory>* of;
};

wrapped_memory* wrapped(GstMemory* memory) { return reinterpret_cast<wrapped_memory*>(memory); }

struct CarouselAllocator {
    GstAllocator base;
};
struct CarouselAllocatorClass {
    GstAllocatorClass base;
};

GType carousel_allocator_get_type();
G_DEFINE_TYPE(CarouselAllocator, carousel_allocator, GST_TYPE_ALLOCATOR)

void carousel_allocator_class_init(CarouselAllocatorClass* type) {
    type->base.alloc = [](GstAllocator*, gsize, GstAllocationParams*) -> GstMemory* { return nullptr; };
    type->base.free = [](GstAllocator*, GstMemory* memory) {
        delete wrapped(memory)->of;
        g_free(memory);
    };
}

void carousel_allocator_init(CarouselAllocator* self) {
    GstAllocator* a = &self->base;
    a->mem_type = "CarouselFrame";
    a->mem_map_full = [](GstMemory* memory, GstMapInfo*, gsize) -> gpointer {
        return const_cast<std::byte*>(
            (*wrapped(memory)->of)->map());  // mapped for reading only: the memory is READONLY
    };
    a->mem_unmap_full = [](GstMemory* memory, GstMapInfo* info) {
        (*wrapped(memory)->of)->unmap(reinterpret_cast<const std::byte*>(info->data));
    };
    GST_OBJECT_FLAG_SET(self, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}

}  // namespace

GstMemory* wrap(std::shared_ptr<frame_memory> of) {
    static GstAllocator* const allocator =
        GST_ALLOCATOR(gst_object_ref_sink(g_object_new(carousel_allocator_get_type(), nullptr)));
    wrapped_memory* memory = g_new0(wrapped_memory, 1);
    const u64 bytes = of->bytes();
    gst_memory_init(&memory->base,
                    static_cast<GstMemoryFlags>(GST_MEMORY_FLAG_READONLY | GST_MEMORY_FLAG_NO_SHARE),
                    allocator, nullptr, bytes, 0, 0, bytes);
    memory->of = new std::shared_ptr<frame_memory>(std::move(of));
    return &memory->base;
}

}  // namespace carousel::gstreamer
