package io.lancegateway.client;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.lancegateway.proto.v1.StorageOptions;
import java.util.Map;

/** Tells the gateway with each call how the caller wants the stores to be reached. */
final class StorageOptionsHeader implements ClientInterceptor {

    private static final Metadata.Key<byte[]> KEY =
            Metadata.Key.of("lance-gateway-storage-options-bin", Metadata.BINARY_BYTE_MARSHALLER);

    private final Map<String, String> options;

    StorageOptionsHeader(Map<String, String> options) {
        this.options = options;
    }

    @Override
    public <ReqT, RespT> ClientCall<ReqT, RespT> interceptCall(
            MethodDescriptor<ReqT, RespT> method, CallOptions call, Channel next) {
        if (options.isEmpty()) {
            return next.newCall(method, call);
        }
        return new SimpleForwardingClientCall<>(next.newCall(method, call)) {
            @Override
            public void start(Listener<RespT> listener, Metadata headers) {
                headers.put(
                        KEY,
                        StorageOptions.newBuilder().putAllOptions(options).build().toByteArray());
                super.start(listener, headers);
            }
        };
    }
}
