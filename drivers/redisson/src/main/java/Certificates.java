import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;
import org.redisson.config.Config;
import org.redisson.config.SslVerificationMode;

/** Configures Redisson with the PEM files in the request open. */
final class Certificates {
    private static final Pattern PKCS8 =
        Pattern.compile("-----BEGIN PRIVATE KEY-----(.*?)-----END PRIVATE KEY-----", Pattern.DOTALL);

    private Certificates() {
    }

    static void configure(Map<String, Object> ask, Config config) throws GeneralSecurityException, IOException {
        if (ask.get("tls_ca") != null) {
            config.setSslTrustManagerFactory(trusting(read(ask.get("tls_ca"))));
        }
        if (ask.get("tls_cert") != null) {
            config.setSslKeyManagerFactory(presenting(read(ask.get("tls_cert")), (String) ask.get("tls_key")));
        }
        if (Boolean.TRUE.equals(ask.get("tls_skip_verify"))) {
            config.setSslVerificationMode(SslVerificationMode.NONE);
        }
    }

    private static Certificate[] read(Object file) throws GeneralSecurityException, IOException {
        try (InputStream in = Files.newInputStream(Path.of((String) file))) {
            return CertificateFactory.getInstance("X.509").generateCertificates(in).toArray(new Certificate[0]);
        }
    }

    /** Returns a factory that trusts these certificates in addition to the system's. */
    private static TrustManagerFactory trusting(Certificate[] more) throws GeneralSecurityException, IOException {
        KeyStore all = empty();
        for (Certificate one : more) {
            all.setCertificateEntry("given " + all.size(), one);
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init((KeyStore) null);
        for (TrustManager manager : factory.getTrustManagers()) {
            for (Certificate one : ((X509TrustManager) manager).getAcceptedIssuers()) {
                all.setCertificateEntry("system " + all.size(), one);
            }
        }
        factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(all);
        return factory;
    }

    /** Returns a factory that presents a client's certificate, with the key in a PEM file. */
    private static KeyManagerFactory presenting(Certificate[] chain, String file)
        throws GeneralSecurityException, IOException {
        Matcher pem = PKCS8.matcher(Files.readString(Path.of(file)));
        if (!pem.find()) {
            throw new IOException("--key must be PKCS #8 for Java: openssl pkcs8 -topk8 -nocrypt -in FILE converts it");
        }
        PrivateKey key = KeyFactory.getInstance(chain[0].getPublicKey().getAlgorithm())
            .generatePrivate(new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(pem.group(1))));
        char[] none = new char[0];
        KeyStore own = empty();
        own.setKeyEntry("client", key, none, chain);
        KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        factory.init(own, none);
        return factory;
    }

    private static KeyStore empty() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        return store;
    }
}
