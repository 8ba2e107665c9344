package io.lancegateway.flink;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.DataInputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.zip.ZipEntry;
import org.apache.flink.table.factories.Factory;
import org.junit.jupiter.api.Test;

/** The jar that users get. */
class ShadedJarIT {

    private static final Path JAR = Path.of(System.getProperty("shaded.jar"));

    /** Version of its class files. */
    private static final int JAVA_11 = 55;

    private static List<String> entries() throws Exception {
        try (JarFile jar = new JarFile(JAR.toFile())) {
            return jar.stream()
                    .filter(entry -> !entry.isDirectory())
                    .map(ZipEntry::getName)
                    .collect(Collectors.toList());
        }
    }

    @Test
    void nothingIsInItOutsideOurPackage() throws Exception {
        assertThat(entries())
                .isNotEmpty()
                .allMatch(
                        name -> name.startsWith("io/lancegateway/") || name.startsWith("META-INF/"),
                        "is ours");
    }

    @Test
    void noOtherLibraryKeepsAPlaceWhereServicesAreLookedUp() throws Exception {
        assertThat(entries().stream().filter(name -> name.startsWith("META-INF/services/")))
                .contains("META-INF/services/org.apache.flink.table.factories.Factory")
                .allMatch(
                        name ->
                                name.startsWith("META-INF/services/io.lancegateway.")
                                        || name.startsWith("META-INF/services/org.apache.flink."));
        assertThat(entries()).noneMatch(name -> name.startsWith("META-INF/versions/"));
    }

    @Test
    void allOfItRunsOnJava11() throws Exception {
        try (JarFile jar = new JarFile(JAR.toFile())) {
            for (String name : entries()) {
                if (name.endsWith(".class")) {
                    try (DataInputStream in =
                            new DataInputStream(jar.getInputStream(jar.getEntry(name)))) {
                        assertThat(in.readInt()).isEqualTo(0xcafebabe);
                        in.readUnsignedShort();
                        assertThat(in.readUnsignedShort()).as(name).isLessThanOrEqualTo(JAVA_11);
                    }
                }
            }
        }
    }

    @Test
    void itNeedsNothingButFlink() throws Exception {
        ClassLoader flinkAlone = new FlinkAlone();
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {JAR.toUri().toURL()}, flinkAlone)) {
            Class<?> factory =
                    loader.loadClass("io.lancegateway.flink.table.LanceDynamicTableFactory");
            Factory made = (Factory) factory.getDeclaredConstructor().newInstance();

            assertThat(made.factoryIdentifier()).isEqualTo("lance");
            assertThat(made.optionalOptions()).isNotEmpty();
            assertThat(factory.getClassLoader()).isSameAs(loader);
        }
    }

    /** Netty looks for its native library under the name of the package that it was moved to. */
    @Test
    void aUnixSocketCanBeUsed() throws Exception {
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {JAR.toUri().toURL()}, new FlinkAlone())) {
            Class<?> options = loader.loadClass("io.lancegateway.client.GatewayOptions");
            Class<?> client = loader.loadClass("io.lancegateway.client.GatewayClient");
            Object builder =
                    options.getMethod("builder", String.class)
                            .invoke(null, "grpc+unix:///nowhere.sock");
            Object built = builder.getClass().getMethod("build").invoke(builder);

            AutoCloseable connected =
                    (AutoCloseable) client.getMethod("connect", options).invoke(null, built);

            assertThat(connected).isNotNull();
            connected.close();
        }
    }

    /** A parent that knows Java and Flink, and none of the libraries on the test's class path. */
    private static final class FlinkAlone extends ClassLoader {

        FlinkAlone() {
            super(ClassLoader.getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            if (name.startsWith("org.apache.flink.") || name.startsWith("org.slf4j.")) {
                return ShadedJarIT.class.getClassLoader().loadClass(name);
            }
            throw new ClassNotFoundException(name);
        }
    }
}
