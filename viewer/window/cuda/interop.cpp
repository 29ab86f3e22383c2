// CUDA-GL interop through a pixel buffer that CUDA and GL share: CUDA writes the buffer and GL copies it into
// the texture, both on the GPU.
#include "viewer/window/window.hpp"

#include <epoxy/gl.h>
// The next header includes GL/gl.h, so it must follow epoxy, which replaces GL/gl.h.
#include <cuda_gl_interop.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>

#include "core/errors.hpp"
#include "device/cuda/check.hpp"

namespace carousel::viewer {
namespace {

std::string hex_of(const cudaUUID_t& id) {
    std::string out;
    for (const char c : id.bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return out;
}

std::string renderer_name() {
    const GLubyte* name = glGetString(GL_RENDERER);
    return name != nullptr ? reinterpret_cast<const char*>(name) : "an unknown renderer";
}

class pixel_buffer final : public interop {
public:
    explicit pixel_buffer(u64 bytes) : bytes_(bytes) {
        glGenBuffers(1, &buffer_);
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer_);
        glBufferData(GL_PIXEL_UNPACK_BUFFER, static_cast<GLsizeiptr>(bytes), nullptr, GL_STREAM_DRAW);
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
        const cudaError_t status =
            cudaGraphicsGLRegisterBuffer(&resource_, buffer_, cudaGraphicsRegisterFlagsWriteDiscard);
        if (status != cudaSuccess) {
            glDeleteBuffers(1, &buffer_);
            device::cuda::fail_setup(status, "cudaGraphicsGLRegisterBuffer", "the viewer's GL device");
        }
    }
    ~pixel_buffer() override {
        unmap(nullptr);
        CAROUSEL_CUDA_LOG(cudaGraphicsUnregisterResource(resource_));
        glDeleteBuffers(1, &buffer_);
    }
    void copy(device::queue& q, const std::byte* from) override {
        auto* stream = static_cast<cudaStream_t>(q.native_stream());
        unmap(stream);  // if a copy has failed after the mapping, the resource is still mapped
        CAROUSEL_CUDA_RUN("the viewer", cudaGraphicsMapResources(1, &resource_, stream));
        mapped_ = true;
        stream_ = stream;
        void* at = nullptr;
        std::size_t bytes = 0;
        CAROUSEL_CUDA_RUN("the viewer", cudaGraphicsResourceGetMappedPointer(&at, &bytes, resource_));
        if (bytes < bytes_)
            throw device_error(
                fmt::format("the viewer's pixel buffer has {} bytes, the picture {}", bytes, bytes_));
        CAROUSEL_CUDA_RUN("the viewer", cudaMemcpyAsync(at, from, bytes_, cudaMemcpyDeviceToDevice, stream));
    }
    void show(unsigned texture, u32 width, u32 height) override {
        unmap(stream_);
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER, buffer_);
        glBindTexture(GL_TEXTURE_2D, texture);
        glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
        glTexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, static_cast<GLsizei>(width), static_cast<GLsizei>(height),
                        GL_RGBA, GL_UNSIGNED_BYTE, nullptr);
        glBindTexture(GL_TEXTURE_2D, 0);
        glBindBuffer(GL_PIXEL_UNPACK_BUFFER, 0);
    }

private:
    void unmap(cudaStream_t stream) noexcept {
        if (!mapped_) return;
        mapped_ = false;
        CAROUSEL_CUDA_LOG(cudaGraphicsUnmapResources(1, &resource_, stream));
    }
    u64 bytes_;
    GLuint buffer_ = 0;
    cudaGraphicsResource_t resource_ = nullptr;
    cudaStream_t stream_ = nullptr;
    bool mapped_ = false;
};

}  // namespace

std::unique_ptr<interop> make_interop(const device::device_id& device, u64 bytes, std::string& why_not) {
    std::array<int, 8> devices{};
    unsigned count = 0;
    const cudaError_t status =
        cudaGLGetDevices(&count, devices.data(), static_cast<unsigned>(devices.size()), cudaGLDeviceListAll);
    if (status != cudaSuccess || count == 0) {
        (void)cudaGetLastError();
        why_not = fmt::format("GL runs on {}, not on the ring's GPU", renderer_name());
        return nullptr;
    }
    bool same = false;
    for (unsigned k = 0; k < count && k < devices.size(); ++k) {
        cudaDeviceProp p{};
        if (cudaGetDeviceProperties(&p, devices[k]) == cudaSuccess && hex_of(p.uuid) == device.uuid)
            same = true;
    }
    if (!same) {
        why_not = fmt::format("GL runs on another GPU ({}) than the ring", renderer_name());
        return nullptr;
    }
    try {
        return std::make_unique<pixel_buffer>(bytes);
    } catch (const error& e) {
        why_not = e.what();
        return nullptr;
    }
}

}  // namespace carousel::viewer
